"""Stands in for Hyperas if it is not installed: the names that model functions for Elephas's search import."""
