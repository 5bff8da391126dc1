"""What the configuration language knows of each layer type: its sizes, its parameters, its rules. On the driver.

One module a family; a type is one function, registered by `layer_type`, that is given a `Draft` and completes it.
"""
