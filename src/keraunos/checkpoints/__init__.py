"""Checkpoints: whole states of a training, stored so that a kill at any moment leaves one to continue from."""
