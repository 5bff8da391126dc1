"""Analytics Zoo's `zoo.tfpark.gan`: generative adversarial networks. Runs on the driver."""
