"""Recurrent layers. Runs on the driver and on workers."""
