"""Programs of the older systems, run unchanged. Runs on the driver and on workers.

A program asks for `sparkflow`, `zoo` or TensorFlow 1.x, and finds what Keraunos has in their place:

- `systems` is the table of aliases: which name stands for which module;
- `aliases` makes the import system find them;
- `shadows` replaces packages that are installed and mean something else today (`tensorflow`), for the program alone;
- `lazy_names` has what a program uses without having made it: `spark`, `sc`, …;
- `script` runs a program as Python would;
- `spark_settings` and `worker_daemon` install all that in Spark's Python workers.
"""
