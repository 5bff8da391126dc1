"""Events, progress and history of a fit."""
