"""Programs for Python 2 by the real `keraunos run`, with modules beside them and functions on executors."""

import os
import subprocess
import sys

import pytest

ENVIRONMENT = {
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.log.level=ERROR pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "MASTER": "local[2]",
}

PROGRAM = """\
import math
import sys
import shapes
import plain

rows = sc.parallelize(xrange(10), 2)


def halves(partition):
    import late
    for x in partition:
        yield plain.half(x), map(None, [x])[0], late.third(x), shapes.area((x, 2))


total = 0
for (half, same, third, area) in rows.mapPartitions(halves).collect():
    total += half + same + third + area
print "total", total, rows.map(lambda x: (x, x / 2)).map(lambda (x, h): unicode(h)).distinct().count()
print rows.map(lambda x: eval("x / 2")).sum(), rows.map(lambda x: "%s" % ("k%d" % x).encode("utf-8")).first()
print rows.filter(lambda x: str(x).encode("utf-8") in ("3", "7")).collect(), rows.map(lambda x: math.ceil(x) / 2).max()
print >>sys.stderr, "done"
"""

SHAPES = "print 'shapes'\n\ndef area((width, height)):\n    return width * height / 4\n"


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", *arguments],
        cwd=folder,
        env=os.environ | ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.slow
def test_functions_on_executors_and_modules_beside_the_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "plain.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "late.py").write_text(
        "def third(x):\n    try:\n        return x / 3\n    except TypeError, e:\n        raise\n"
    )
    done = run(tmp_path, "--as", "elephas", "program.py")
    assert done.returncode == 0, done.stderr[-3000:]
    expected = sum(x // 2 + x + x // 3 + x * 2 // 4 for x in range(10))
    assert done.stdout == f"shapes\ntotal {expected} 5\n20 k0\n[3, 7] 4.5\n"
    assert "done\n" in done.stderr


def test_an_error_shows_the_users_lines(tmp_path):
    (tmp_path / "program.py").write_text("print 'before'\nimport broken\n")
    (tmp_path / "broken.py").write_text("def f((a, b)):\n    return a / b\n\nprint f((1, 0))\n")
    done = run(tmp_path, "--as", "sparkflow", "program.py")
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert done.stderr.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path}/program.py", line 2, in <module>',
        "    import broken",
        f'  File "{tmp_path}/broken.py", line 4, in <module>',
        "    print f((1, 0))",
        f'  File "{tmp_path}/broken.py", line 2, in f',
        "    return a / b",
        "ZeroDivisionError: integer division or modulo by zero",
    ]


@pytest.mark.parametrize(
    ("program", "half"), [("import old\n", "3"), ("import old\nh = lambda n: f'{n}'\n", "3.5"), ("import new\n", "3.5")]
)
def test_a_program_that_imports_what_only_python_2_can_is_for_python_2(tmp_path, program, half):
    (tmp_path / "program.py").write_text(f"{program}print(7 / 2)\n")
    (tmp_path / "old.py").write_text("print 'old'\n")
    (tmp_path / "new.py").write_text("print('new')\n")
    done = run(tmp_path, "--as", "tensorspark", "program.py")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [half]), done.stderr[-2000:]


def test_what_cannot_be_translated_is_one_message(tmp_path):
    (tmp_path / "program.py").write_text("print 'before'\nf(async=True)\n")
    done = run(tmp_path, "--as", "zoo", "program.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a program for Python 2 that cannot be translated: line 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_of_today_is_pythons_own_affair(tmp_path):
    (tmp_path / "program.py").write_text("print 'before'\n")
    done = run(tmp_path, "program.py")
    assert done.returncode == 1
    assert done.stderr.endswith("SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?\n")
