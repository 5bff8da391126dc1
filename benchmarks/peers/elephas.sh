#!/bin/sh
# Makes the virtual environment in which benchmarks/exchange.py runs Elephas 7.3, whose pins no other environment bears.
#
#     benchmarks/peers/elephas.sh [folder, default .venv-elephas] [python 3.9 to 3.12, default python3.11]
set -eu
folder=${1:-.venv-elephas}
python=${2:-python3.11}
"$python" -m venv "$folder"
# setuptools is for what builds from source; TensorFlow is what the script that is timed makes its model with.
"$folder/bin/pip" install --quiet --upgrade pip "setuptools<81" wheel
"$folder/bin/pip" install --quiet "elephas==7.3.*" "tensorflow>=2.16,<2.20"
"$folder/bin/python" -c "import importlib.metadata as m; print('elephas', m.version('elephas'), 'in', '$folder')"
