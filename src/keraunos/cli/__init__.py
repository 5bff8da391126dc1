"""The `keraunos` command."""
