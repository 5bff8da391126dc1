"""Layers of images. Runs on the driver and on workers."""
