"""Analytics Zoo's `zoo.util`. Runs on the driver."""
