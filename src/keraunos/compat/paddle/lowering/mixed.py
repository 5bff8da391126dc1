"""Mixed layers: projections and operators. Runs on the driver and on workers."""
