"""What Elephas's programs use beside its models."""
