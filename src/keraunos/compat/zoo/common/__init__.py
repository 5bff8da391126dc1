"""Analytics Zoo's `zoo.common`: contexts. Runs on the driver."""
