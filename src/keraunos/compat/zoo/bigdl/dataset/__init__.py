"""`bigdl.dataset`: data sets, read from folders; nothing is downloaded. Runs on the driver."""
