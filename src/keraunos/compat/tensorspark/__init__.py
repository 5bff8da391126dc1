"""TensorSpark's API on this engine: TensorFlow sessions trained over an RDD. Runs on the driver.

The submodules have the old library's names: `core.spark_session` (the document's `sps`), `core.weight_combiner`,
`core.partitioner` and the programs in `example`.
"""
