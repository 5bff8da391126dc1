"""Searching for the hyper-parameters with which a model learns best."""
