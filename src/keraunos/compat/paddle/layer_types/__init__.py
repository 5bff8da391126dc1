"""The layer types of the configuration language: their sizes, parameters and rules. Runs on the driver.

One module a family; a type is one function, registered by `layer_type`, that is given a `Draft` and completes it.
"""
