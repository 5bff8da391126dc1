"""The interface between Keraunos and Spark. Runs on the driver.

`session.Session` is the interface, `classic.ClassicSession` the one for Spark with a JVM, and `registry.session_of`
returns the session of a SparkSession, a SparkContext, a DataFrame or an RDD. Everything that needs a SparkContext or an
object of the JVM is in here. What a SparkSession itself offers (`read`, `conf`, `createDataFrame`) is used everywhere.
"""
