# The spark.ml example of Elephas's document, word for word, for `keraunos run --as elephas`. The document leaves out
# imports, the model of its basic example, the data and three numbers; they come first here.

from keras.models import Sequential
from keras.layers import Activation, Dense, Dropout
from keras.optimizers import SGD
from pyspark.mllib.evaluation import MulticlassMetrics

from elephas import optimizers as elephas_optimizers
from elephas.ml.adapter import to_data_frame
from elephas.ml_model import ElephasEstimator

from elephas_digits import X_train, Y_train, X_test, Y_test, nb_classes

nb_epoch = 20
batch_size = 32

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

df = to_data_frame(sc, X_train, Y_train, categorical=True)
test_df = to_data_frame(sc, X_test, Y_test, categorical=True)

adadelta = elephas_optimizers.Adadelta()
estimator = ElephasEstimator(sc,model, 
        nb_epoch=nb_epoch, batch_size=batch_size, optimizer=adadelta, frequency='batch', mode='asynchronous', num_workers=2,
        verbose=0, validation_split=0.1, categorical=True, nb_classes=nb_classes)

fitted_model = estimator.fit(df)

prediction = fitted_model.transform(test_df)
pnl = prediction.select("label", "prediction")
pnl.show(100)

prediction_and_label= pnl.map(lambda row: (row.label, row.prediction))
metrics = MulticlassMetrics(prediction_and_label)
print(metrics.precision())
print(metrics.recall())
