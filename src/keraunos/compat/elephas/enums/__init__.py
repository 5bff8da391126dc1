"""Elephas's names for how workers meet and how often. Runs on the driver."""
