# The basic example of Elephas's document, word for word, for `keraunos run --as elephas`. The document leaves out the
# imports of Keras and the data; they come first here, and what the model has learned is printed in the end.

from keras.models import Sequential
from keras.layers import Activation, Dense, Dropout
from keras.optimizers import SGD

from elephas_digits import X_train, Y_train, X_test, Y_test

from pyspark import SparkContext, SparkConf
conf = SparkConf().setAppName('Elephas_App').setMaster('local[8]')
sc = SparkContext(conf=conf)

model = Sequential()
model.add(Dense(128, input_dim=784))
model.add(Activation('relu'))
model.add(Dropout(0.2))
model.add(Dense(128))
model.add(Activation('relu'))
model.add(Dropout(0.2))
model.add(Dense(10))
model.add(Activation('softmax'))
model.compile(loss='categorical_crossentropy', optimizer=SGD())

from elephas.utils.rdd_utils import to_simple_rdd
rdd = to_simple_rdd(sc, X_train, Y_train)

from elephas.spark_model import SparkModel
from elephas import optimizers as elephas_optimizers

adagrad = elephas_optimizers.Adagrad()
spark_model = SparkModel(sc,model, optimizer=adagrad, frequency='epoch', mode='asynchronous', num_workers=2)
spark_model.train(rdd, nb_epoch=20, batch_size=32, verbose=0, validation_split=0.1, num_workers=8)

# From here on not the document's.
classes = spark_model.predict_classes(X_test)
print("accuracy", (classes == Y_test.argmax(1)).mean())
