"""Front-ends with the APIs of older systems, each a translation into a `TrainingJob`. Runs on the driver.

The packages here know nothing of each other. Names inside them are those of the old libraries.
"""
