"""BigDL's `bigdl.transform`. Runs on the driver and on executors."""
