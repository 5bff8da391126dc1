"""spark.ml estimators and models."""
