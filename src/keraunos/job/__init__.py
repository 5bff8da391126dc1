"""A training job as plain data."""
