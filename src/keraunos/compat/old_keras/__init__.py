"""Keras as it was, on today's Keras: what the names of its older releases mean. Runs on the driver and on workers.

- `days` says which releases there are and how their defaults differ;
- `layer_table`, `optimizer_table` and `value_tables` are the tables of old names and new meanings; they are data;
- `values`, `layers`, `layers_2`, `weights`, `fans`, `optimizers`, `merging`, `models`, `generators` and `tools` carry
  the tables out; what they make is today's Keras, or one of the registered classes in `own_layers`, `own_images` and
  `own_initializers`;
- `packages` makes the modules of the day, under the names that programs import them by; `contents` fills them with
  `names`, and `backend_names`;
- `evidence` tells from a program's source which day it is of.
"""
