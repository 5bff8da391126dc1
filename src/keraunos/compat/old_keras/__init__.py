"""Keras as it was, on today's Keras: what the names of its older releases mean. Runs on the driver and on workers.

- `days` lists the releases and their different defaults;
- `layer_table`, `optimizer_table` and `value_tables` are the tables of old names and new meanings; they are data;
- `values`, `layers`, `layers_2`, `weights`, `fans`, `optimizers`, `merging`, `models`, `accuracy`, `fitting`, `files`,
  `generators` and `tools` carry the tables out; what they make is today's Keras, or one of the registered classes in
  `own_layers`, `own_images`, `own_initializers`, `own_metrics` and `own_optimizers`, or one of the callbacks in
  `own_callbacks`;
- `compiled`, `layer_lists`, `layer_names`, `older_files` and `own_models` keep what models and layers were to programs
  besides their calls;
- `packages` makes the modules of the day, under the names that programs import them by; `contents` fills them with
  `names`, and `backend_names`;
- `evidence` detects a program's day from its source.
"""
