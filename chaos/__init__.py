"""Fits on a real Spark cluster, disturbed on purpose: `python -m chaos --runs 60 --seed 1 --minutes 60`."""
