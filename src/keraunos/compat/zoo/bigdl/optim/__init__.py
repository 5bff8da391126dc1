"""`bigdl.optim`: optim methods, schedules, triggers, validation methods, summaries. Runs on the driver."""
