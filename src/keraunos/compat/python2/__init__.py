"""Programs written for Python 2, on today's Python. Runs on the driver and on executors.

A source is read (`program`), told from Python 3 (`evidence`), put into today's syntax by fissix (`syntax`), and given
Python 2's meanings where they differ in silence (`rewriting`): what it then calls is in `operations`, `old_builtins`
and `modules`. `imports` does the same for the modules beside a program. A source that is valid Python 3, and uses no
name that only Python 2 had, is compiled as it is.
"""
