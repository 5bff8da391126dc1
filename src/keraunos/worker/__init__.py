"""The training loop and the resources it runs on."""
