"""`bigdl.version`: the release whose Python API is here. Runs on the driver."""

__version__ = "0.13.0"
