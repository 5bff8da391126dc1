"""Layers of Analytics Zoo and BigDL that Keras has not, as Keras layers. Runs on the driver and on workers.

Models that hold them name these modules, which every worker can import.
"""
