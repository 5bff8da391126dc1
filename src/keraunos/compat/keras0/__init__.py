"""Keras 0 on today's Keras, module by module. Runs on the driver and on workers.

`keraunos run --as elephas` and `--as zoo` show it to programs of that day as `keras`. Importing it is enough to use
it, too.
"""

from keraunos.compat.old_keras.packages import furnish

furnish(__name__, "0")
