"""Programs of the older systems, run as they are. Runs on the driver and on workers.

A program asks for `sparkflow`, `zoo` or TensorFlow 1.x, and finds what Keraunos has in their place:

- `systems` says, as a table, which names stand for which modules;
- `aliases` makes the import system find them;
- `shadows` replaces packages that are installed and mean something else today (`tensorflow`), for the program alone;
- `lazy_names` has what a program uses without having made it: `spark`, `sc`, …;
- `script` runs a program as Python would;
- `spark_settings` and `worker_daemon` bring all that to Spark's Python workers.
"""
