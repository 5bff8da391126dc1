"""Elephas: Keras models on Spark under Elephas's own names, of every release from 0.1 to 7.3. Runs on the driver."""
