"""Python 2's `itertools`, with the iterators that are builtins today. Runs on the driver and on executors."""

from __future__ import annotations

import builtins
import itertools
from itertools import *  # noqa: F403 - a program's star import finds what was there

ifilter = builtins.filter
ifilterfalse = itertools.filterfalse
imap = builtins.map
izip = builtins.zip
izip_longest = itertools.zip_longest
