"""Modules of Python 2's standard library, and where what was in them is today. Runs on the driver and on executors."""

from __future__ import annotations

_OURS = "keraunos.compat.python2.modules"

# Of the names that are in both Pythons only those are here whose contents differ.
MODULES = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SocketServer": "socketserver",
    "StringIO": f"{_OURS}.old_string_io",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "anydbm": "dbm",
    "cPickle": f"{_OURS}.old_pickle",
    "cStringIO": f"{_OURS}.old_string_io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "csv": f"{_OURS}.old_csv",
    "exceptions": "builtins",
    "htmlentitydefs": "html.entities",
    "httplib": "http.client",
    "itertools": f"{_OURS}.old_itertools",
    "math": f"{_OURS}.old_math",
    "pickle": f"{_OURS}.old_pickle",
    "sets": f"{_OURS}.old_sets",
    "string": f"{_OURS}.old_string",
    "thread": "_thread",
    "types": f"{_OURS}.old_types",
    "urllib": f"{_OURS}.old_urllib",
    "urllib2": f"{_OURS}.old_urllib",
    "urlparse": "urllib.parse",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
    "xmlrpclib": "xmlrpc.client",
}
