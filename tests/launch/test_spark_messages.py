"""What Spark says of a failure, in the words that a user gets."""

import pytest

from keraunos.launch.spark import translated

TRACE = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/spark/worker.py", line 1234, in main
    process()
  File "/spark/worker.py", line 1226, in process
    serializer.dump_stream(out_iter, outfile)
  File "/user/rows.py", line 7, in read
    raise ValueError(f"row {number} is odd")
ValueError: row 17 is odd

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:561)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
"""


@pytest.mark.parametrize("twice", [False, True])
def test_the_end_of_a_python_trace_is_shown(twice):
    text = TRACE + f"Caused by: {TRACE}" if twice else TRACE
    told = str(translated(RuntimeError(text)))
    assert told.endswith("ValueError: row 17 is odd")
    assert 'raise ValueError(f"row {number} is odd")' in told
    assert "Driver stacktrace" not in told


def test_without_a_trace_the_first_lines_are_shown():
    told = str(translated(RuntimeError("Stage cancelled\n\tat org.apache.spark.X\nbecause of a reason")))
    assert told == "The Spark job failed: Stage cancelled because of a reason"
