import ast
import inspect
import sys
import traceback

import numpy as np
import pytest

from keraunos.compat.python2.program import read, tree_of
from keraunos.errors import JobError


def ran(source, path="program.py", **names):
    namespace = {"__name__": "program", **names}
    exec(read(source.encode() if isinstance(source, str) else source, path).code, namespace)
    return namespace


def printed(source, capsys):
    ran(source)
    return capsys.readouterr().out


# What Python 2 prints, as its documentation says and as Python 2.7 does.
PRINTS = {
    "print 7 / 2, -7 / 2, 7 / 2.0, 7 // 2": "3 -4 3.5 3\n",
    "from __future__ import division\nprint 7 / 2": "3.5\n",
    "x = 7\nx /= 2\nprint x": "3\n",
    "print 'a',\nprint 'b'": "a b\n",
    "import sys\nprint >>sys.stdout, 'out', 1": "out 1\n",
    "print": "\n",
    "print ('%d of %d') % (1, 2)": "1 of 2\n",
    "print 1\nprint ('a', 'b')": "1\n('a', 'b')\n",
    "print('one')\nprint ('a', 'b'), 1": "one\n('a', 'b') 1\n",
    "try:\n    raise ValueError, 'bad'\nexcept (KeyError, ValueError), e:\n    print e": "bad\n",
    "print `1 + 1` + 'x'": "2x\n",
    "print 1 <> 2, 0777, 10L, ur'\\d'": "True 511 10 \\d\n",
    "print [x * x for x in xrange(4)], range(3) + [7]": "[0, 1, 4, 9] [0, 1, 2, 7]\n",
    "print map(None, [1, 2], [3]), map(lambda x: x + 1, (1, 2))": "[(1, 3), (2, None)] [2, 3]\n",
    "print filter(lambda c: c > 'a', 'abc'), filter(None, (0, 1))": "bc (1,)\n",
    "print zip('ab', (1, 2)), len(zip([1]))": "[('a', 1), ('b', 2)] 1\n",
    "d = {'b': 2, 'a': 1}\nk = d.keys()\nk.sort()\nprint k, d.has_key('a'), sorted(d.iteritems())": (
        "['a', 'b'] True [('a', 1), ('b', 2)]\n"
    ),
    "print {'a': 1}.items()[0], {'a': 1}.values()[0]": "('a', 1) 1\n",
    "print reduce(lambda a, b: a + b, [1, 2, 3]), cmp(2, 1), unicode(3), long(4), unichr(97)": "6 1 3 4 a\n",
    "print round(2.5), round(0.5), round(-2.5), round(2.675, 2), round(1.25, 1)": "3.0 1.0 -3.0 2.67 1.3\n",
    "print sorted([1, 3, 2], lambda a, b: cmp(b, a))": "[3, 2, 1]\n",
    "x = [3, 1, 2]\nx.sort(lambda a, b: a - b)\nprint x": "[1, 2, 3]\n",
    "print (lambda (k, v): v - k)((1, 5))": "4\n",
    "def f((a, b), c): return a + b + c\nprint f((1, 2), 3)": "6\n",
    "it = iter([1, 2])\nprint it.next(), it.next()": "1 2\n",
    "class C:\n    def next(self): return 5\n    def __iter__(self): return self\nprint next(C()), C().next()": "5 5\n",
    "class E(Exception):\n    message = 'its own'\ndef f(e, *a):\n    try: raise e(*a)\n    except Exception, x:"
    " print repr(x.message),\nf(KeyError, 'k'); f(KeyError); f(KeyError, 1, 2); f(E, 3)": "'k' '' '' 'its own' ",
    "class C:\n    def __nonzero__(self): return False\nprint bool(C())": "False\n",
    "class C:\n    def __div__(self, other): return 'divided'\nprint C() / 2": "divided\n",
    "class C:\n    def __init__(self, n): self.n = n\n    def __cmp__(self, o): return cmp(self.n, o.n)\n"
    "print C(1) < C(2), max(C(1), C(3)).n, C(1) == C(1)": "True 3 True\n",
    "class M(type): pass\nclass C(object):\n    __metaclass__ = M\nprint type(C).__name__": "M\n",
    "class C:\n    __n = 9\n    def half(self):\n        self.__n /= 2; return self.__n\nprint C().half()": "4\n",
    "x = [7, 9]\nx[1] /= 2\nprint x": "[7, 4]\n",
    "exec 'y = 1' in globals()\nprint y": "1\n",
    "print isinstance(u'x', basestring), isinstance(1, (int, long))": "True True\n",
    "from itertools import izip\nprint list(izip([1], [2]))": "[(1, 2)]\n",
    "import string\nprint string.letters[:2], string.join(['a', 'b'], '-')": "ab a-b\n",
    "import sys\nreload(sys)\nsys.setdefaultencoding('utf8')\nprint sys.maxint > 2 ** 31": "True\n",
    "import StringIO\nprint StringIO.StringIO('ab').read(), StringIO.StringIO(b'ab').read(1) == b'a'": "ab True\n",
    "import urllib, urllib2, urlparse\nprint urllib.urlencode({'a': 1}), urllib2.HTTPError.__name__": "a=1 HTTPError\n",
    "import ConfigParser, Queue\nprint ConfigParser.ConfigParser.__name__, Queue.Queue().empty()": (
        "ConfigParser True\n"
    ),
    "import struct\nprint struct.unpack('>h', buffer(b'\\0\\1\\2', 1, 2))[0], ord(b'a'[0])": "258 97\n",
    "import types\nprint type('') == types.StringType": "True\n",
    "if True:\n\tx = 1\n        y = 2\nprint x + y": "3\n",
    "exec 'y = 7 / 2; z = range(2) + map(None, [y])'\nprint y, z": "3 [0, 1, 3]\n",
    "names = {}\nexec 'def f(n): return n / 2' in names\nprint names['f'](7)": "3\n",
    "print eval('7 / 2'), eval(compile('unicode(9 / 2)', 'x', 'eval')), (lambda n: eval('n / 2'))(7)": "3 4 3\n",
    "from __future__ import division\nprint eval('7 / 2')": "3.5\n",
    "def f(s):\n    exec s in globals()\n    return made\nprint f('made = 5')": "5\n",
    "import math\nprint math.floor(7 / 2.0) / 2, math.ceil(5 / 2.0) / 2, range(5)[math.floor(2.5)]": "1.5 1.5 2\n",
    "from math import *\nprint ceil(2.1), floor(-0.5), sqrt(4), xrange(ceil(1.5))[1]": "3.0 -1.0 2.0 1\n",
    "import numpy as np\nprint np.divide(7, 2), np.divide(7, 2.0), np.divide(np.array([7]), [2])": "3 3.5 [3]\n",
    "b = u'\\u00e9x'.encode('utf-8')\nprint b, 'n %s' % b, '{0}'.format(b), str(b), [b], '%(k)s' % {'k': b}": (
        "éx n éx éx éx ['éx'] éx\n"
    ),
    "s = 'abc'\nif isinstance(s, unicode): s = s.encode('utf-8')\n"
    "print s == 'abc', s != 'abc', s in ('abc', 'd'), s not in {'abc': 1}, {'abc': 1}.get(s), isinstance(s, str)": (
        "True False True False 1 True\n"
    ),
    "d = b'PK12'\nprint d[0] == 'P', d[0] in ('P', 'Q'), d[:2] == 'PK', 'K1' in d, {d: 1}.get('x', 0)": (
        "True True True True 0\n"
    ),
    "print 'abc'.decode('utf-8'), 'abc'.decode(), b'abc'.decode('ascii')": "abc abc abc\n",
    "import numpy as np\na = np.array([b'a', b'b'])\nprint a == 'a', 'b' != a, a[0] == 'a'": (
        "[ True False] [ True False] True\n"
    ),
    "fmt, args = '%s %d', (b'a', 1)\nprint fmt % args, 7 % 4, map(str, [b'a', 1]), unicode('é', 'utf8')": (
        "a 1 3 ['a', '1'] é\n"
    ),
    "d = [b'a', (b'b', {b'c': 1})]\nprint d == ['a', ('b', {'c': 1})], d != ['a'], (1, 2) == (1, 2), [1] != [2]": (
        "True True True True\n"
    ),
    "for c in u'ab'.encode('utf-8'): print c == 'a', ord(c),\nprint [c + '.' for c in b'xy'], map(ord, b'a')": (
        "True 97 False 98 ['x.', 'y.'] [97]\n"
    ),
    "class C:\n    k = 3\n    xs = [i / 2 for i in range(k)]\n    def f(self): return [k for k in 'x']\nprint C.xs": (
        "[0, 0, 1]\n"
    ),
    "class C(object):\n    def __eq__(self, other): return True\nprint len({C(): 1})": "1\n",
    "import numpy\nprint (numpy.zeros(3)).shape": "(3,)\n",
    "x = '''a\n\tb'''\nif x:\n\tprint len(x)": "4\n",
}  # fmt: skip


@pytest.mark.parametrize("source", PRINTS)
def test_a_program_prints_what_python_2_printed(source, capsys):
    assert printed(source, capsys) == PRINTS[source]


def test_divisions_of_arrays_are_those_of_their_numbers():
    found = ran(
        "a = np.array([7, -7])\nb = a / 2\nc = a / 2.0\nsame = a\na /= 2\nd = np.int64(7) / np.int64(2)\n"
        "e = 1 / np.array([2, 4])\nprint `1`,",
        np=np,
    )
    assert found["b"].tolist() == [3, -4]
    assert found["c"].tolist() == [3.5, -3.5]
    assert found["same"] is found["a"]
    assert found["a"].tolist() == [3, -4]
    assert found["d"] == 3
    assert found["e"].tolist() == [0, 0]


def test_tensors_are_divided_as_tensorflow_1_divided_them():
    tf = pytest.importorskip("tensorflow")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = ran("whole = a / 2\nreal = b / 2\nprint `1`,", a=tf.constant(7), b=tf.constant(7.0))
        assert session.run([found["whole"], found["real"]]) == [3, 3.5]


def test_pickles_of_python_2_are_read(tmp_path):
    # {'x': numpy.array([1.0])}'s shape, as Python 2.7's protocol 0 writes text: str as `S'...'`.
    (tmp_path / "old.pkl").write_bytes(b"(dp0\nS'x'\np1\nS'\\xe9'\np2\ns.")
    found = ran(
        "import cPickle\n"
        f"with open({str(tmp_path / 'old.pkl')!r}) as f: value = cPickle.load(f)\n"
        f"with open({str(tmp_path / 'new.pkl')!r}, 'w') as f: cPickle.dump([1, 2], f)\n"
        f"with open({str(tmp_path / 'new.pkl')!r}, 'rb') as f: again = cPickle.load(f)\n"
    )
    assert found["value"] == {"x": "\xe9"}
    assert found["again"] == [1, 2]


def test_another_file_is_run_in_the_callers_names(tmp_path):
    (tmp_path / "other.py").write_text("print 'here',\nz = 7 / 2\n")
    assert ran(f"execfile({str(tmp_path / 'other.py')!r})")["z"] == 3


# What is Python 3 stays what it is

TODAY = [
    "x = 7 / 2\nprint(x)",
    "x = 7 / 2\nprint(f'{x}', end='')\nfor i in xrange(2): pass",
    "try:\n    unicode\nexcept NameError:\n    unicode = str\nx = 7 / 2",
    "import sys\nif sys.version_info[0] < 3:\n    text = unicode\nx = 7 / 2",
    "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle\nx = 7 / 2",
    "import six\nx = 7 / 2\nif six.PY2: xrange",
    "from functools import reduce\nx = 7 / 2\nreduce(max, [1, 2])",
    "import pandas as pd\nx = 7 / 2\ndef f(frame):\n    return frame.iteritems()",
    "def f(x: int): return unicode(x)\nx = 7 / 2",
    "def f(file, cmp): return file, cmp\nx = 7 / 2",
    "from functools import *\nx = 7 / 2\ny = [reduce(max, [1])] if 'reduce' in dir() else []",
]


@pytest.mark.parametrize("source", TODAY)
def test_a_program_for_python_3_is_compiled_as_it_is(source):
    program = read(source.encode(), "program.py")
    assert not program.translated
    assert program.code == compile(source, "program.py", "exec", dont_inherit=True)


OLD_BUT_VALID = {
    "xrange": "x = 7 / 2\nfor i in xrange(2): pass",
    "unicode": "x = 7 / 2\ny = unicode(3)",
    "iteritems": "x = 7 / 2\nfor k, v in {}.iteritems(): pass",
    "urllib2": "import urllib2\nx = 7 / 2",
    "maxint": "import sys\nx = 7 / 2\ny = sys.maxint",
    "izip": "import itertools\nx = 7 / 2\ny = list(itertools.izip([1]))",
}


@pytest.mark.parametrize("name", OLD_BUT_VALID)
def test_a_name_of_python_2_tells_a_program_that_python_3_would_compile(name):
    assert ran(OLD_BUT_VALID[name])["x"] == 3


def test_a_module_of_the_programs_own_by_an_old_name_tells_nothing(tmp_path):
    (tmp_path / "commands.py").write_text("")
    assert not read(b"import commands\nx = 7 / 2", str(tmp_path / "program.py")).translated


@pytest.mark.parametrize("source", ["x = = 1", "x = 1\nreturn x", "f'{x'", "def f(:\n  pass", "print f'{1}'"])
def test_what_no_python_takes_is_python_3s_error(source):
    with pytest.raises(SyntaxError) as expected:
        compile(source, "program.py", "exec")
    with pytest.raises(SyntaxError) as found:
        read(source.encode(), "program.py")
    assert (found.value.msg, found.value.lineno) == (expected.value.msg, expected.value.lineno)


# Lines, encodings


def test_lines_are_those_of_the_file(tmp_path):
    source = (
        "# a comment\n'''A\ndocstring.'''\nfrom __future__ import division\nimport urllib2, urlparse\n\n"
        "def f((a, b),\n      c):\n    print 'x', \\\n        a\n    try:\n        raise KeyError, 'k'\n"
        "    except KeyError, (e,):\n        pass\n    return lost\n\nf((1, 2), 3)\n"
    )
    (tmp_path / "program.py").write_text(source)
    with pytest.raises(NameError) as failed:
        ran(source, str(tmp_path / "program.py"))
    last = traceback.extract_tb(failed.value.__traceback__)
    assert [(each.lineno, each.line) for each in last[-2:]] == [(17, "f((1, 2), 3)"), (15, "return lost")]
    assert "^" not in "".join(traceback.format_list(last)[-2:])  # the columns are not the file's


def test_a_functions_source_is_the_users(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("x = 0\n\ndef f((a, b)):\n    return a / b\n\nprint `f((7, 2))`,\n")
    found = ran(path.read_text(), str(path))
    assert inspect.getsource(found["f"]) == "def f((a, b)):\n    return a / b\n"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("# -*- coding: latin-1 -*-\n", "latin-1"), ("# coding: utf-8\n", "utf-8"), ("", "utf-8-sig")],
)
def test_the_sources_encoding_is_kept(head, encoding, capsys):
    assert printed((head + "print 'é', len(u'é')\n").encode(encoding), capsys) == "é 1\n"


# What cannot be

REFUSED = {
    "f(async=True)\nprint 1": r"is a program for Python 2 that cannot be translated: line 1: .*'f\(async=True\)'",
    "class C:\n    def __getslice__(self, i, j): pass\nprint 1": "line 2: the class C defines __getslice__",
    "x = 1\ny = [x for x in (2, 3)]\nprint x": "line 3: 'x' is read after a list comprehension",
    "x = 0\nwhile x < 9:\n    y = [x for x in (2, 3)]\n    x += 1\nprint 1": "line 4: 'x' is read after a",
    "x = 0\nfor i in (1, 2):\n    print x\n    y = [x for x in (2, 3)]": "line 3: 'x' is read after a list",
    "x = 0\ny = [x for x in (2, 3)]\ndef f(): return x\nprint f()": "line 3: 'x' is read after a list comprehension",
    "x = 0\ny = [x for x in (2, 3)]\nprint [x * z for z in y]": "line 3: 'x' is read after a list comprehension",
    "def f(y):\n    x = 0\n    exec 'x = ' + y\n    return x\nprint f('1')": "'x', in 'f', line 3 of 'program.py'",
    "def f(y):\n    exec 'x = ' + y\n    return x\nprint f('1')": "not bind .* Received: 'x', in 'f', line 2",
    "n = 1\nclass C:\n    n = 2\n    xs = [n for _ in range(2)]\nprint C.xs": "line 4: 'n' of the class C is read in",
    "print 'x'.decode('utf-16')": "can be decoded from .* Received: 'utf-16'",
    "print 1\nsys.setdefaultencoding('latin-1')": "can be given 'utf-8' only here. Received: 'latin-1'",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_be_translated_is_refused_by_name(source):
    with pytest.raises(JobError, match=REFUSED[source]):
        ran(source)


LEFT_AND_NOT_READ = [
    "x = 0\n[x for x in (1, 2)]\ndef f(x): return x\ng = lambda x: x\nprint f(3), g(4)",
    "for x in (3, 4):\n    [x for x in ()]\nprint 3, 4",
    "def f(rows):\n    for r in rows:\n        y = [c for c in r]\n    return [c for c in y]\nprint 3, f(['4'])[0]",
    "x = [x for x in (3, 4)]\nprint x[0], x[1]",
    "def f(): return [i for i in 'ab']\ndef g():\n    i = 3\n    def h(): return i\n    return h()\nprint g(), 4",
]


@pytest.mark.parametrize("source", LEFT_AND_NOT_READ)
def test_variables_that_are_left_and_not_read_are_no_matter(source, capsys):
    assert printed(source, capsys) == "3 4\n"


def test_tables_are_read_and_written_as_bytes(tmp_path, capsys):
    path = str(tmp_path / "t.csv")
    source = (
        f"import csv\nwith open({path!r}, 'wb') as f:\n    w = csv.writer(f)\n    w.writerow(['n', u'\\u00e9'])\n"
        "    csv.DictWriter(f, ['n', 'w']).writerow({'n': 1, 'w': 'x'})\n"
        f"with open({path!r}, 'rb') as f: print list(csv.reader(f)),\n"
        f"with open({path!r}, 'rb') as f: print csv.DictReader(f).next()['n']\n"
        f"with open({path!r}, 'rb') as f: print [line.split(b',')[0] == 'n' for line in f]\n"
    )
    assert printed(source, capsys) == "[['n', 'é'], ['1', 'x']] 1\n[True, False]\n"


def test_a_variable_that_is_bound_again_after_a_comprehension_is_no_matter(capsys):
    source = (
        "[e for e in (1, 2)]\ntry:\n    {}['k']\nexcept KeyError, e:\n    print e\n[x for x in 'ab']\nx = 1\nprint x"
    )
    assert printed(source, capsys) == "'k'\n1\n"


@pytest.fixture
def without_fissix(monkeypatch):
    monkeypatch.setitem(sys.modules, "fissix", None)
    monkeypatch.delitem(sys.modules, "keraunos.compat.python2.syntax", raising=False)
    import keraunos.compat.python2

    monkeypatch.delattr(keraunos.compat.python2, "syntax", raising=False)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("x = 1\nprint x", "line 2: 'print x'"),
        ("try: pass\nexcept E, e: pass", "line 2"),
        ("for i in xrange(3): pass", "line 1: xrange"),
        ("if 1:\n\tx = 1\n        y = 2", "line 3: tabs and spaces in one block"),
    ],
)
def test_without_the_extra_a_program_for_python_2_is_refused_by_its_name(without_fissix, source, where):
    with pytest.raises(JobError, match=rf"for Python 2 \({where}.*pip install 'keraunos\[python2\]'"):
        read(source.encode(), "program.py")


def test_without_the_extra_other_errors_stay(without_fissix):
    with pytest.raises(SyntaxError):
        read(b"x = = 1", "program.py")
    assert not read(b"x = 7 / 2", "program.py").translated
    assert tree_of(b"print 1") is None


def test_a_tree_is_that_of_whichever_python():
    assert isinstance(tree_of(b"print 1"), ast.Module)
    assert tree_of(b"x = = 1") is None
