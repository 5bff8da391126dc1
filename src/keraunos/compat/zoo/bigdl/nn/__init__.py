"""`bigdl.nn`: criteria, as validation methods use them. Runs on the driver."""
