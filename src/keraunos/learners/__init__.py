"""Models that can step, one file a framework."""
