"""`bigdl.models.lenet`: LeNet-5 for handwritten digits."""
