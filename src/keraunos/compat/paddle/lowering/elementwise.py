"""Arithmetic between vectors. Runs on the driver and on workers."""
