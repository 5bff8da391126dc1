"""Layers of sequences without a state. Runs on the driver."""
