"""Costs that look at sequences or at samples of classes. Runs on the driver and on workers."""
