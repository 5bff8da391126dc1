"""Model formats: what brings a model to workers, serves it and keeps it in files. Run on both sides."""
