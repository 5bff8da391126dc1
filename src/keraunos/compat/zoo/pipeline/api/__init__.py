"""Analytics Zoo's `zoo.pipeline.api`: datasets, optimizers, predictors and layers. Runs on the driver."""
