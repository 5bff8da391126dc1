"""spark.ml beside Keras: `adapter` converts DataFrames, `params` has the Params of the estimator."""
