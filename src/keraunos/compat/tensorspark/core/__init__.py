"""The old library's `core`: the session, the combiners and the partitioner. Runs on the driver."""
