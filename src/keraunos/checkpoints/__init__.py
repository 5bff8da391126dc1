"""Checkpoints: complete states of a training, stored so that one remains readable after a kill at any moment."""
