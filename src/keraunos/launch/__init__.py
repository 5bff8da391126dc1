"""Starting workers, following them, and bringing the result home."""
