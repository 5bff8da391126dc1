# The MLlib example of Elephas's document, word for word, for `keraunos run --as elephas`. It follows up on the basic
# example, whose context, model and data come first here; what the model has learned is printed in the end.

from keras.models import Sequential
from keras.layers import Activation, Dense, Dropout
from keras.optimizers import SGD

from elephas_digits import X_train, Y_train, X_test, Y_test, nb_classes

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

from elephas import optimizers as elephas_optimizers

from elephas.utils.rdd_utils import to_labeled_point
lp_rdd = to_labeled_point(sc, X_train, Y_train, categorical=True)

from elephas.spark_model import SparkMLlibModel
adadelta = elephas_optimizers.Adadelta()
spark_model = SparkMLlibModel(sc,model, optimizer=adadelta, frequency='batch', mode='hogwild', num_workers=2)
spark_model.train(lp_rdd, nb_epoch=20, batch_size=32, verbose=0, validation_split=0.1, categorical=True, nb_classes=nb_classes)

# From here on not the document's.
classes = spark_model.predict_classes(X_test)
print("accuracy", (classes == Y_test.argmax(1)).mean())
