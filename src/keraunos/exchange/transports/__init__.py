"""Ways for a worker's contributions to reach the others, one per file. Runs on workers."""
