"""What turns contributions into new parameters: one rule a file, found by name in `registry`."""
