"""Layers over the steps of a sequence. Runs on the driver and on workers."""
