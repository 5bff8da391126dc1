import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.cli.spark_options import SparkCommandLine


@pytest.mark.parametrize(
    ("line", "options", "script", "arguments"),
    [
        ("program.py a --b", [], "program.py", ["a", "--b"]),
        ("--master yarn program.py", [("--master", "yarn")], "program.py", []),
        ("--deploy-mode=client", [("--deploy-mode", "client")], "", []),
        ("-v --supervise p.py --master x", [("-v", None), ("--supervise", None)], "p.py", ["--master", "x"]),
        ("--conf a=b=c -c d=e p.py", [("--conf", "a=b=c"), ("-c", "d=e")], "p.py", []),
        ("--conf=a=b p.py", [("--conf", "a=b")], "p.py", []),
        ("--name", [("--name", None)], "", []),
        ("", [], "", []),
    ],
)
def test_a_command_line_is_taken_apart(line, options, script, arguments):
    parsed = SparkCommandLine.parse(line.split())
    assert list(parsed.options) == options
    assert parsed.script == script
    assert list(parsed.arguments) == arguments


words = st.text("abc./=", min_size=1, max_size=4)
options = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["--master", "--conf", "-c", "--py-files", "--as"]), words),
        st.tuples(st.sampled_from(["-v", "--verbose", "--supervise"]), st.none()),
    )
)


@given(options, words, st.lists(st.text("ab-=", max_size=4)))
def test_nothing_is_lost_and_nothing_changes_places(options, script, arguments):
    line = SparkCommandLine(tuple(options), script, tuple(arguments))
    assert SparkCommandLine.parse([*line.words(), script, *arguments]) == line


def test_the_last_value_counts():
    line = SparkCommandLine.parse(["--name", "a", "--conf", "x=1", "--name", "b", "-c", "x=2", "-c", "y=3", "p.py"])
    assert line.value_of("--name") == "b"
    assert line.value_of("--master") is None
    assert line.setting("x") == "2"
    assert line.setting("z") is None
    assert list(line.without("--name").words()) == ["--conf", "x=1", "-c", "x=2", "-c", "y=3"]
