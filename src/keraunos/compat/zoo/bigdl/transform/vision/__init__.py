"""BigDL's `bigdl.transform.vision`: images and what is done to them. Runs on the driver and on executors."""
