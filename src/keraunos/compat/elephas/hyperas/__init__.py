"""Stands in for Hyperas where it is not installed: the names that model functions for Elephas's search import."""
