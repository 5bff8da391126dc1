"""The old library's examples, as functions that can be called from a shell. Runs on the driver."""
