"""Analytics Zoo's `zoo.models.image`: its models are BigDL's files, which are refused. Runs on the driver."""
