"""Arithmetic between rows and columns. Runs on the driver."""
