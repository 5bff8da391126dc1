# Every command of the repository. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
VENV_TORCH := .venv-torch
VENV_OLDEST := .venv-oldest
PIP := -m pip --disable-pip-version-check install --quiet
# Two at a time, a file in one process: most tests wait for processes to start, and files share what is dear to set up.
PYTEST := -m pytest --numprocesses 2 --dist loadfile

# Java is looked for when a command needs it; the script prints a JAVA_HOME or says what to install.
WITH_JAVA = export JAVA_HOME="$$(scripts/java.sh)"

# The oldest environment has no TensorFlow; its pyspark leaves the sockets of `collect` to the garbage collector.
OLDEST_WITHOUT := --ignore tests/learners/test_keras_tensorflow.py --ignore tests/convergence/test_engine_tensorflow.py --ignore tests/compat \
	--deselect tests/integration/test_backends.py::test_workers_on_tensorflow_for_a_driver_on_jax
OLDEST_WARNS := -W "ignore:unclosed <socket:ResourceWarning" -W "ignore::pytest.PytestUnraisableExceptionWarning"

.PHONY: help demo test test-torch test-oldest chaos chaos-quick check format clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## train on a local Spark, save, load in a new process, compare
	@$(WITH_JAVA); $(VENV)/bin/keraunos demo $(ARGS)

test: $(VENV)/.installed $(VENV)/spark.jsa ## the test suite, on JAX and TensorFlow (ARGS="-k name" narrows it)
	@$(WITH_JAVA); $(VENV)/bin/python $(PYTEST) $(ARGS)

test-torch: $(VENV_TORCH)/.installed ## the suites that need torch, in an environment of their own
	@$(WITH_JAVA); KERAS_BACKEND=torch $(VENV_TORCH)/bin/python $(PYTEST) -m torch $(ARGS)

test-oldest: $(VENV_OLDEST)/.installed ## the JAX side on the oldest versions that pyproject.toml admits
	@$(WITH_JAVA); $(VENV_OLDEST)/bin/python $(PYTEST) -m "not torch" $(OLDEST_WITHOUT) $(OLDEST_WARNS) $(ARGS)

chaos: $(VENV)/.installed ## an hour of fits on a real cluster that are disturbed on purpose (ARGS="--seed 2" for others)
	@$(WITH_JAVA); $(VENV)/bin/python -m chaos --runs 60 --minutes 60 $(ARGS)

chaos-quick: $(VENV)/.installed ## ten minutes of the same
	@$(WITH_JAVA); $(VENV)/bin/python -m chaos --quick $(ARGS)

check: $(VENV)/.installed ## what must hold before the tests: ruff, mypy, import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.installed ## put the code in its standard form
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

clean: ## remove what the commands above left behind
	rm -rf $(VENV) $(VENV_TORCH) $(VENV_OLDEST) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf metastore_db spark-warehouse derby.log
	find src tests benchmarks chaos examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: an environment is set up once and again when what it is made from changes. With a stamp in place
# no command needs a network.
$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	@$$(scripts/python.sh) -m venv $(VENV)
	@$(VENV)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[hyperparam,jax,notebook,tensorflow,tensorflow1]' --group dev
	@touch $@

# Spark's classes in one file, so that the many JVMs of the tests start in half the time.
$(VENV)/spark.jsa: $(VENV)/.installed tests/java.py
	@$(WITH_JAVA); $(VENV)/bin/python -m tests.java $@ >$@.log 2>&1 || echo "JVMs will start slowly; $@.log says why."

$(VENV_TORCH)/.installed: pyproject.toml constraints.txt constraints-torch.txt
	@echo "Setting up $(VENV_TORCH) (a few minutes the first time) ..."
	@$$(scripts/python.sh) -m venv $(VENV_TORCH)
	@$(VENV_TORCH)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV_TORCH)/bin/python $(PIP) -c constraints.txt -c constraints-torch.txt -e '.[torch]' --group dev
	@touch $@

$(VENV_OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	@echo "Setting up $(VENV_OLDEST) (a few minutes the first time) ..."
	@$$(scripts/python.sh) -m venv $(VENV_OLDEST)
	@$(VENV_OLDEST)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV_OLDEST)/bin/python $(PIP) -c constraints-oldest.txt -e '.[hyperparam,jax,notebook]' --group dev
	@touch $@
