"""Coverage-guided fuzzing of what reads messages and files. A target is a module with `one(data)` and `seeds()`."""

TARGETS = ("wire", "coordinator", "slices", "manifests", "archives")
