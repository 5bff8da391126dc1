"""Analytics Zoo's `zoo.pipeline`. Runs on the driver."""
