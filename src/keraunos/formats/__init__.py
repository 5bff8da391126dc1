"""Model formats: how models are sent to workers, served, and stored in files. Run on the driver and on workers."""
