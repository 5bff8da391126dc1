"""Programs with the idioms of Elephas's examples of five dates, on scikit-learn's digits.

Each trains as the examples of its day did and prints what it reached; `digits.py` lies beside it in place of MNIST.
"""

DIGITS = """
import numpy as np
from sklearn.datasets import load_digits


def load_data():
    data = load_digits()
    images = data.images.astype("uint8") * 15
    return (images[:1400], data.target[:1400]), (images[1400:], data.target[1400:])


def write_csv(path, rows=600):
    data = load_digits()
    with open(path, "w") as file:
        file.write("id," + ",".join("f%d" % i for i in range(64)) + ",target" + chr(10))
        for number, (row, target) in enumerate(zip(data.data[:rows], data.target[:rows])):
            values = ",".join("%g" % value for value in row)
            file.write("%d,%s,Class_%d%s" % (number, values, target + 1, chr(10)))
"""

_DATA = """
(X_train, y_train), (X_test, y_test) = digits.load_data()
X_train = X_train.reshape(1400, 64).astype("float32") / 255
X_test = X_test.reshape(397, 64).astype("float32") / 255
Y_train = np_utils.to_categorical(y_train, nb_classes)
Y_test = np_utils.to_categorical(y_test, nb_classes)
"""

# September 2015: Keras 0.1, where a layer is told its input; Elephas 0.1 with get_network and AsynchSparkModel.
OF_2015 = f"""
from __future__ import absolute_import
from __future__ import print_function

from keras.datasets import mnist
from keras.models import Sequential
from keras.layers.core import Dense, Dropout, Activation
from keras.optimizers import SGD, Adam, RMSprop
from keras.utils import np_utils

from elephas.spark_model import SparkModel, SparkMLlibModel
from elephas.asynch_spark_model import AsynchSparkModel
from elephas import spark_flask_model
from elephas.ml_model import ElephasEstimator, ElephasTransformer
from elephas.ml.adapter import to_data_frame
from elephas.utils.rdd_utils import to_simple_rdd, to_labeled_point

from pyspark import SparkContext, SparkConf
from pyspark.mllib.evaluation import MulticlassMetrics
import digits

assert spark_flask_model.SparkModel is AsynchSparkModel  # its name on its first day
nb_classes = 10
{_DATA}

def network():
    model = Sequential()
    model.add(Dense(64, 64))
    model.add(Activation('relu'))
    model.add(Dropout(0.1))
    model.add(Dense(64, 10))
    model.add(Activation('softmax'))
    model.compile(loss='categorical_crossentropy', optimizer=RMSprop(lr=0.005))
    return model

sc = SparkContext(conf=SparkConf().setAppName('Digits_Spark_MLP').setMaster('local[2]'))
rdd = to_simple_rdd(sc, X_train, Y_train)
for name, kind in (('simple', SparkModel), ('asynchronous', AsynchSparkModel)):
    spark_model = kind(sc, network())
    spark_model.train(rdd, nb_epoch=8, batch_size=32, verbose=0, validation_split=0.1, num_workers=2)
    score = spark_model.get_network().evaluate(X_test, Y_test, show_accuracy=True, verbose=2)
    print(name, 'accuracy', score[1])

spark_model = SparkMLlibModel(sc, network())
spark_model.train(to_labeled_point(sc, X_train, Y_train, categorical=True), nb_epoch=8, batch_size=32, verbose=0,
                  validation_split=0.1, num_workers=2, categorical=True, nb_classes=nb_classes)
print('mllib accuracy', spark_model.get_network().evaluate(X_test, Y_test, show_accuracy=True, verbose=2)[1])
loss = spark_model.get_network().evaluate(X_test, Y_test, verbose=0)
assert isinstance(loss, float), loss

df = to_data_frame(sc, X_train, Y_train, categorical=True)
estimator = ElephasEstimator(sc, network(), nb_epoch=8, batch_size=32, verbose=0, validation_split=0.1, num_workers=2,
                             categorical=True, nb_classes=nb_classes)
prediction = estimator.fit(df).transform(to_data_frame(sc, X_test, Y_test, categorical=True))
pnl = prediction.select("label", "prediction")
metrics = MulticlassMetrics(pnl.map(lambda row: (row.label, row.prediction)))
print('ml accuracy', metrics.precision())
"""

# March 2016: Keras 0.3 and Elephas 0.3 with its setters, a pipeline over vectors of spark.mllib, and Hyperas, whose
# model function uses `pickle` without an import, as Elephas's own example did.
OF_MARCH_2016 = f"""
from __future__ import print_function
from hyperopt import Trials, STATUS_OK, tpe
from hyperas import optim
from hyperas.distributions import choice, uniform
from pyspark.mllib.linalg import Vectors
import numpy as np
from pyspark import SparkContext, SparkConf
from pyspark.sql import SQLContext
from pyspark.ml.feature import StringIndexer, StandardScaler
from pyspark.mllib.evaluation import MulticlassMetrics
from pyspark.ml import Pipeline

from keras.models import Sequential
from keras.layers.core import Dense, Dropout, Activation
from keras.layers.normalization import BatchNormalization
from keras.layers.advanced_activations import PReLU
from keras.utils import np_utils, generic_utils
from keras.optimizers import SGD

from elephas.hyperparam import HyperParamModel
from elephas.ml_model import ElephasEstimator
from elephas.spark_model import SparkModel
from elephas.utils.rdd_utils import to_simple_rdd
from elephas import optimizers as elephas_optimizers
import digits

nb_classes = 10
sc = SparkContext(conf=SparkConf().setAppName('Digits_Pipeline').setMaster('local[2]'))
sql_context = SQLContext(sc)
digits.write_csv('train.csv')

data = sc.textFile('train.csv').filter(lambda x: x.split(',')[0] != 'id').map(lambda line: line.split(','))
data = data.map(lambda line: (Vectors.dense(np.asarray(line[1:-1]).astype(np.float32)),
                              str(line[-1]).replace('Class_', '')))
train_df = sql_context.createDataFrame(data, ['features', 'category'])
string_indexer = StringIndexer(inputCol="category", outputCol="index_category")
scaler = StandardScaler(inputCol="features", outputCol="scaled_features", withStd=True, withMean=True)

model = Sequential()
model.add(Dense(64, input_shape=(len(train_df.select("features").first()[0]),)))
model.add(BatchNormalization())
model.add(PReLU())
model.add(Dropout(0.2))
model.add(Dense(nb_classes))
model.add(Activation('softmax'))
model.compile(loss='categorical_crossentropy', optimizer='adam')

adadelta = elephas_optimizers.Adadelta()
estimator = ElephasEstimator()
estimator.setFeaturesCol("scaled_features")
estimator.setLabelCol("index_category")
estimator.set_keras_model_config(model.to_yaml())
estimator.set_optimizer_config(adadelta.get_config())
estimator.set_nb_epoch(10)
estimator.set_batch_size(16)
estimator.set_num_workers(1)
estimator.set_verbosity(0)
estimator.set_validation_split(0.15)
estimator.set_categorical_labels(True)
estimator.set_nb_classes(nb_classes)
estimator.set_frequency('batch')
fitted_pipeline = Pipeline(stages=[string_indexer, scaler, estimator]).fit(train_df)
pnl = fitted_pipeline.transform(train_df).select("index_category", "prediction")
pnl.show(5)
metrics = MulticlassMetrics(pnl.map(lambda row: (row.index_category, row.prediction)))
print('pipeline accuracy', metrics.precision())


def data():
    from keras.utils import np_utils
    import digits
    nb_classes = 10
{"".join(f"    {line}{chr(10)}" for line in _DATA.strip().splitlines())}
    return X_train, Y_train, X_test, Y_test


def model(X_train, Y_train, X_test, Y_test):
    from keras.models import Sequential
    from keras.layers.core import Dense, Dropout, Activation
    from keras.optimizers import RMSprop
    model = Sequential()
    model.add(Dense({{{{choice([32, 64])}}}}, input_shape=(64,)))
    model.add(Activation('relu'))
    model.add(Dropout({{{{uniform(0, 0.3)}}}}))
    model.add(Dense(10))
    model.add(Activation('softmax'))
    model.compile(loss='categorical_crossentropy', optimizer=RMSprop(lr=0.01))
    model.fit(X_train, Y_train, batch_size={{{{choice([16, 32])}}}}, nb_epoch=3, show_accuracy=True, verbose=0,
              validation_data=(X_test, Y_test))
    score, acc = model.evaluate(X_test, Y_test, show_accuracy=True, verbose=0)
    return {{'loss': -acc, 'status': STATUS_OK, 'model': model.to_yaml(), 'weights': pickle.dumps(model.get_weights())}}


best = HyperParamModel(sc, num_workers=2).minimize(model=model, data=data, max_evals=2)
X_train, Y_train, X_test, Y_test = data()
print('search accuracy', float(np.mean(best.predict(X_test).argmax(1) == Y_test.argmax(1))))
"""

# December 2016: Keras 1, and an Elephas that compiles the model itself.
OF_DECEMBER_2016 = f"""
from __future__ import absolute_import
from __future__ import print_function

from keras.models import Sequential, Model
from keras.layers import Input, merge, Convolution2D, MaxPooling2D, Flatten, Reshape
from keras.layers.core import Dense, Dropout, Activation
from keras.optimizers import SGD, RMSprop
from keras.regularizers import l2
from keras.utils import np_utils

from elephas.spark_model import SparkModel, SparkMLlibModel
from elephas.utils.rdd_utils import to_simple_rdd, to_labeled_point
from elephas import optimizers as elephas_optimizers

from pyspark import SparkContext, SparkConf
import digits

nb_classes = 10
{_DATA}
sc = SparkContext(conf=SparkConf().setAppName('Digits_Spark_MLP').setMaster('local[2]'))
model = Sequential()
model.add(Dense(64, input_dim=64, init='he_normal', W_regularizer=l2(1e-5)))
model.add(Activation('relu'))
model.add(Dropout(0.1))
model.add(Dense(10))
model.add(Activation('softmax'))

rdd = to_simple_rdd(sc, X_train, Y_train)
spark_model = SparkModel(sc, model, optimizer=elephas_optimizers.Adagrad(lr=0.05), frequency='batch',
                         mode='asynchronous', num_workers=2, master_optimizer=SGD(lr=0.1))
spark_model.train(rdd, nb_epoch=8, batch_size=16, verbose=0, validation_split=0.1)
score = spark_model.master_network.evaluate(X_test, Y_test, verbose=2)
print('compiled accuracy', score[1])

images = Input(shape=(64,))
shaped = Reshape((8, 8, 1))(images)
convolved = Flatten()(MaxPooling2D((2, 2))(Convolution2D(8, 3, 3, activation='relu', border_mode='same')(shaped)))
joined = merge([convolved, images], mode='concat')
model = Model(input=images, output=Dense(10, activation='softmax')(joined))
model.compile(RMSprop(lr=0.005, decay=1e-4), 'categorical_crossentropy', ['accuracy'])
assert model.count_params() == 8 * 9 + 8 + (8 * 16 + 64) * 10 + 10
spark_model = SparkModel(sc, model, mode='synchronous', num_workers=2)
spark_model.train(rdd, nb_epoch=6, batch_size=16, verbose=0, validation_split=0.1)
print('functional accuracy', spark_model.master_network.evaluate(X_test, Y_test, verbose=0)[1])
"""

# 2018: Keras 2 by itself.
OF_2018 = f"""
from keras.models import Sequential
from keras.layers.core import Dense, Dropout, Activation
from keras.utils import np_utils
from keras import optimizers

from elephas.ml_model import ElephasEstimator
from elephas.ml.adapter import to_data_frame
from elephas.spark_model import SparkModel
from elephas.utils.rdd_utils import to_simple_rdd

from pyspark import SparkContext, SparkConf
from pyspark.mllib.evaluation import MulticlassMetrics
from pyspark.ml import Pipeline
import digits

nb_classes = 10
{_DATA}

def network():
    model = Sequential()
    model.add(Dense(64, input_dim=64))
    model.add(Activation('relu'))
    model.add(Dropout(0.1))
    model.add(Dense(10))
    model.add(Activation('softmax'))
    return model

sc = SparkContext(conf=SparkConf().setAppName('Digits_Spark_MLP').setMaster('local[2]'))
model = network()
model.compile(optimizers.SGD(lr=0.1), 'categorical_crossentropy', ['acc'])
spark_model = SparkModel(model, frequency='epoch', mode='asynchronous')
spark_model.fit(to_simple_rdd(sc, X_train, Y_train), epochs=10, batch_size=16, verbose=0, validation_split=0.1)
print('fit accuracy', spark_model.master_network.evaluate(X_test, Y_test, verbose=2)[1])
assert (spark_model.master_network.predict_classes(X_test) == y_test).mean() > 0.8

sgd = optimizers.SGD(lr=0.1, decay=1e-6, momentum=0.9, nesterov=True)
estimator = ElephasEstimator()
estimator.set_keras_model_config(network().to_yaml())
estimator.set_optimizer_config(optimizers.serialize(sgd))
estimator.set_mode("synchronous")
estimator.set_loss("categorical_crossentropy")
estimator.set_metrics(['acc'])
estimator.set_epochs(8)
estimator.set_batch_size(16)
estimator.set_num_workers(2)
estimator.set_validation_split(0.1)
estimator.set_categorical_labels(True)
estimator.set_nb_classes(nb_classes)
df = to_data_frame(sc, X_train, Y_train, categorical=True)
fitted = Pipeline(stages=[estimator]).fit(df)
pnl = fitted.transform(to_data_frame(sc, X_test, Y_test, categorical=True)).select("label", "prediction")
print('ml accuracy', MulticlassMetrics(pnl.rdd.map(lambda row: (row.label, row.prediction))).precision())
"""

# 2022: Keras 2 within TensorFlow.
OF_2022 = """
import numpy as np
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Dense, Dropout, Activation
from tensorflow.keras import optimizers
from tensorflow.keras.optimizers import SGD
from tensorflow.keras.utils import to_categorical

from elephas.ml_model import ElephasEstimator
from elephas.ml.adapter import to_data_frame
from elephas.spark_model import SparkModel
from elephas.utils.rdd_utils import to_simple_rdd

from pyspark import SparkContext, SparkConf
from pyspark.mllib.evaluation import MulticlassMetrics
from pyspark.ml import Pipeline
import digits

(x_train, y_train), (x_test, y_test) = digits.load_data()
x_train = x_train.reshape(1400, 64).astype("float32") / 255
x_test = x_test.reshape(397, 64).astype("float32") / 255
y_train = to_categorical(y_train, 10)
y_test = to_categorical(y_test, 10)
sc = SparkContext(conf=SparkConf().setAppName('Digits_Spark_MLP').setMaster('local[2]'))

model = Sequential()
model.add(Dense(64, input_dim=64))
model.add(Activation('relu'))
model.add(Dropout(0.1))
model.add(Dense(10))
model.add(Activation('softmax'))
model.compile(SGD(lr=0.1), 'categorical_crossentropy', ['acc'])

for mode in ('asynchronous', 'synchronous'):
    spark_model = SparkModel(model, frequency='epoch', mode=mode)
    spark_model.fit(to_simple_rdd(sc, x_train, y_train), epochs=6, batch_size=16, verbose=0, validation_split=0.1)
    score = spark_model.evaluate(x_test, y_test, verbose=2)
    print(mode, 'accuracy', score[1])

sgd = optimizers.SGD(lr=0.1, decay=1e-6, momentum=0.9, nesterov=True)
estimator = ElephasEstimator()
estimator.set_keras_model_config(model.to_json())
estimator.set_optimizer_config(optimizers.serialize(sgd))
estimator.set_mode("synchronous")
estimator.set_loss("categorical_crossentropy")
estimator.set_metrics(['acc'])
estimator.set_epochs(8)
estimator.set_batch_size(16)
estimator.set_validation_split(0.1)
estimator.set_categorical_labels(True)
estimator.set_nb_classes(10)
fitted = Pipeline(stages=[estimator]).fit(to_data_frame(sc, x_train, y_train, categorical=True))
prediction = fitted.transform(to_data_frame(sc, x_test, y_test, categorical=True))
pnl = prediction.select("label", "prediction")
metrics = MulticlassMetrics(pnl.rdd.map(lambda row: (row.label, row.prediction)))
print('scores accuracy', metrics.precision())
"""

PROGRAMS = {
    "2015-09": (OF_2015, "0", ("simple", "asynchronous", "mllib", "ml")),
    "2016-03": (OF_MARCH_2016, "0", ("pipeline", "search")),
    "2016-12": (OF_DECEMBER_2016, "1", ("compiled", "functional")),
    "2018-12": (OF_2018, "2", ("fit", "ml")),
    "2022-08": (OF_2022, "2", ("asynchronous", "synchronous", "scores")),
}
