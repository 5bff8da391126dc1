"""Modules of Python 2's standard library whose contents are elsewhere today. Runs on the driver and on executors."""
