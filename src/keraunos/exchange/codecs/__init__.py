"""How a vector's values travel: as they are, or in fewer bits with the error carried on. Both sides."""
