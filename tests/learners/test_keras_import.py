"""What importing Keras brings into a worker's process."""

import subprocess
import sys

PROGRAM = """
import sys
from keraunos.learners.keras_import import import_keras

keras = import_keras()
assert keras is import_keras() is sys.modules["keras"]
print("sklearn" in sys.modules, len(sys.meta_path))
from keras.wrappers import SKLearnClassifier
print("sklearn" in sys.modules, SKLearnClassifier is keras.wrappers.SKLearnClassifier, len(sys.meta_path))
print(SKLearnClassifier.__mro__[-2].__module__.partition(".")[0])
"""


def test_scikit_learn_comes_with_the_first_who_asks_for_it():
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after, base = told.stdout.splitlines()
    assert before.split()[0] == "False"
    assert after.split()[:2] == ["True", "True"]
    assert before.split()[-1] == after.split()[-1]
    assert base == "sklearn"
