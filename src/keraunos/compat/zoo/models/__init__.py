"""Analytics Zoo's `zoo.models`, of which its images' modules are here. Runs on the driver."""
