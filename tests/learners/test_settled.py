"""What a framework brings is kept out of collections; models are not."""

import subprocess
import sys
import textwrap

import pytest

from keraunos.learners import settled


def in_a_process(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_was_imported_is_frozen_once_and_models_that_are_given_up_are_collected():
    imported, again, later, first, second = in_a_process(
        """
        import gc, os, weakref
        os.environ["KERAS_BACKEND"] = "jax"
        import keras
        from keraunos.job.training_job import ModelSource
        from keraunos.learners.keras_archive import to_archive
        from keraunos.learners.settled import settle
        from keraunos.worker import served_models

        def served(key):
            learner = served_models.served_model(key, lambda: source)
            return weakref.ref(learner.model)

        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        source = ModelSource(to_archive(model), "jax", trusted=())
        served_models.KEPT_MODELS = 1
        first = served("first")
        settle()
        imported = gc.get_freeze_count()
        settle()
        again = gc.get_freeze_count()
        second = served("second")
        settle()
        print(imported, again, gc.get_freeze_count(), first() is None, second() is None)
        """
    )
    assert int(imported) > 100_000
    assert again == imported, "nothing new was imported"
    assert int(later) > 100_000
    assert (first, second) == ("True", "False"), "a model that was given up is gone, although it has cycles"


def test_nothing_is_frozen_without_a_framework():
    (frozen,) = in_a_process(
        """
        import gc
        from keraunos.learners.settled import settle
        settle()
        print(gc.get_freeze_count())
        """
    )
    assert int(frozen) == 0


def test_a_second_framework_is_frozen_too(monkeypatch):
    calls = []
    monkeypatch.setattr(settled.gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(settled, "_settled", {"jax"})
    monkeypatch.setitem(sys.modules, "jax", pytest)
    monkeypatch.setitem(sys.modules, "torch", pytest)
    for _ in range(2):
        settled.settle()
    assert calls == ["freeze"]
