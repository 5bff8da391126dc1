"""Functions of Elephas besides its models."""
