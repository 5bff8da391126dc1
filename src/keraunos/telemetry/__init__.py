"""What a fit tells the person who waits for it: progress and history."""
