"""Costs with a structure of their own: sequences of labels, many classes. Runs on the driver."""
