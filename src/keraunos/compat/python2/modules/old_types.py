"""Python 2's `types`, with a name for every builtin type. Runs on the driver and on executors."""

from __future__ import annotations

import types
from io import IOBase
from types import *  # noqa: F403 - a program's star import finds what was there

BooleanType = bool
ComplexType = complex
DictType = DictionaryType = dict
FloatType = float
IntType = LongType = int
ObjectType = object
ListType = list
StringType = UnicodeType = str
StringTypes = (str,)
TupleType: type = tuple
TypeType = ClassType = type
UnboundMethodType = types.FunctionType
FileType = IOBase
XRangeType = range
SliceType = slice
