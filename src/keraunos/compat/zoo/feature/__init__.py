"""Analytics Zoo's `zoo.feature`: images and records on their way to a model. Runs on the driver and on executors."""
