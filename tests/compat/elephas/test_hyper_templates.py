"""Templates in a function's source become draws."""

import optuna
import pytest

from keraunos.compat.elephas.hyper_draws import Draws
from keraunos.compat.elephas.hyper_templates import drawing
from keraunos.compat.elephas.hyperas.distributions import choice, randint, uniform
from keraunos.compat.python2.program import read
from keraunos.errors import JobError

SCALE = 10


def drawn(function, values, *arguments):
    draws = Draws(optuna.trial.FixedTrial(values))
    return drawing(function)(draws, *arguments), draws.values


def test_names_are_those_of_hyperas():
    class Layers:
        @staticmethod
        def Dense(size):
            return size

    def model():
        rate = {{uniform(0, 1)}}
        kept = [Layers.Dense({{choice([4, 8])}}), Layers.Dense(size={{choice([4, 8])}})]
        kept += [Layers.Dense({{choice([4, 8])}})]
        return [rate, *kept, {{uniform(0, 1)}} * 2]

    values = {"rate": 0.5, "Dense": 4, "size": 8, "Dense_1": 8, "uniform": 0.25}
    assert drawn(model, values) == ([0.5, 4, 8, 8, 0.5], values)


def test_a_value_is_drawn_when_the_function_comes_to_it():
    def model(most):
        layers = {{choice(["three", "four"])}}
        found = [{{randint(most)}} for _ in range(3)]
        if layers == "four":
            found.append({{uniform(0, 1)}})
        return found

    assert drawn(model, {"layers": "three", "randint": 2}, 5) == ([2, 2, 2], {"layers": "three", "randint": 2})
    assert drawn(model, {"layers": "four", "randint": 2, "append": 0.5}, 5)[0] == [2, 2, 2, 0.5]


def test_what_is_no_plain_value_can_be_chosen():
    def model():
        function = {{choice([sum, max])}}
        return function([1, {{choice([1, True])}}])

    assert drawn(model, {"function": 1, "choice": 0}) == (1, {"function": 1, "choice": 0})


def test_the_rest_of_the_function_is_as_it_was():
    base = 3

    def model(a, b=4, *, c=5):
        """Indented as little
        as a string may be."""
        inner = lambda: {{randint(3)}} + base  # noqa: E731
        return {a, b}, {"c": {c}}, inner() * SCALE

    replaced = drawing(model)
    assert replaced(Draws(optuna.trial.FixedTrial({"randint": 2})), 1) == ({1, 4}, {"c": {5}}, 50)
    assert replaced.__code__.co_filename == __file__
    assert replaced.__code__.co_firstlineno == model.__code__.co_firstlineno


def test_a_decorated_function():
    def same(function):
        return function

    @same
    def model():
        return {{uniform(0, 1)}}

    with pytest.raises(JobError, match="Received: model, which is decorated with @same. Leave the decorator out"):
        drawing(model)


def test_a_function_of_a_program_for_python_2_keeps_its_meaning(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "print 'here',\n\ndef model():\n    print 'drawing',\n    return {{choice([7, 9])}} / 2, range(2)\n"
    )
    namespace = {"choice": choice, "__name__": "program"}
    exec(read(path.read_bytes(), str(path)).code, namespace)
    assert drawn(namespace["model"], {"choice": 7}) == ((3, [0, 1]), {"choice": 7})
