# Every command of the repository. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
VENV_TORCH := .venv-torch
VENV_OLDEST := .venv-oldest
VENV_WHEEL := .venv-wheel
VENV_AUDIT := .venv-audit
VENV_FUZZ := .venv-fuzz
PIP := -m pip --disable-pip-version-check install --quiet
# Three at a time, a file in one process: most tests wait for processes to start, and files share what is dear to set up.
# Their order is that of tests/conftest.py.
PYTEST := -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# Java is looked for when a command needs it; the script prints a JAVA_HOME or says what to install.
WITH_JAVA = export JAVA_HOME="$$(scripts/java.sh)"

# The oldest environment has no TensorFlow; its pyspark leaves the sockets of `collect` to the garbage collector.
OLDEST_WITHOUT := --ignore tests/compat \
	--deselect tests/integration/test_backends.py::test_workers_on_tensorflow_for_a_driver_on_jax \
	--deselect tests/launch/test_rdd.py::test_rdd_workers_have_the_environment_of_the_job
OLDEST_WARNS := -W "ignore:unclosed <socket:ResourceWarning" -W "ignore::pytest.PytestUnraisableExceptionWarning"

# What the wheel is built from.
WHEEL_SOURCES := $(shell find src -name __pycache__ -prune -o -type f -print)

.PHONY: help demo test test-fast test-all test-torch test-wheel test-oldest chaos chaos-quick fuzz check audit format clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## train on a local Spark, save, load in a new process, compare
	@$(WITH_JAVA); $(VENV)/bin/keraunos demo $(ARGS)

test: $(VENV)/.compiled $(VENV)/spark.jsa ## the test suite, on JAX and TensorFlow (ARGS="-k name" narrows it)
	@$(WITH_JAVA); $(VENV)/bin/python $(PYTEST) -m "not extended" $(ARGS)

test-fast: $(VENV)/.compiled ## the tests that need no Spark and no other process, for everyday work
	@$(VENV)/bin/python $(PYTEST) --numprocesses 2 -m fast $(ARGS)

test-all: $(VENV)/.compiled $(VENV)/spark.jsa ## the same with its crossed matrices and long searches, before a release
	@$(WITH_JAVA); HYPOTHESIS_PROFILE=long $(VENV)/bin/python $(PYTEST) $(ARGS)

test-torch: $(VENV_TORCH)/.compiled ## the suites that need torch, in an environment of their own
	@$(WITH_JAVA); KERAS_BACKEND=torch $(VENV_TORCH)/bin/python $(PYTEST) -m "torch and not extended" $(ARGS)

test-wheel: $(VENV)/.installed $(VENV_WHEEL)/.wheel ## the README, the guide and the demo, with the wheel and what it declares
	@$(WITH_JAVA); $(VENV)/bin/python $(PYTEST) --dist load tests/docs/installed_wheel.py $(ARGS)

test-oldest: $(VENV_OLDEST)/.installed ## the JAX side on the oldest versions that pyproject.toml admits
	@$(WITH_JAVA); $(VENV_OLDEST)/bin/python $(PYTEST) -m "not torch" $(OLDEST_WITHOUT) $(OLDEST_WARNS) $(ARGS)

chaos: $(VENV)/.installed ## an hour of fits on a real cluster that are disturbed on purpose (ARGS="--seed 2" for others)
	@$(WITH_JAVA); $(VENV)/bin/python -m chaos --runs 60 --minutes 60 $(ARGS)

chaos-quick: $(VENV)/.installed ## ten minutes of the same
	@$(WITH_JAVA); $(VENV)/bin/python -m chaos --quick $(ARGS)

fuzz: $(VENV_FUZZ)/.installed ## search for messages and files that break what reads them (ARGS="--target wire --seconds 600")
	@PYTHONPATH=src $(VENV_FUZZ)/bin/python -m fuzz $(ARGS)

check: $(VENV)/.installed ## what must hold before the tests: ruff, mypy, import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo

# Without a network pip-audit cannot be installed, nor ask: the script says so, and ends with 3.
audit: $(VENV)/.installed ## known vulnerabilities of what is installed, and an SBOM in build/
	@$(MAKE) --no-print-directory $(VENV_AUDIT)/.installed || true
	@$(VENV)/bin/python scripts/audit.py --pip-audit $(VENV_AUDIT)/bin/python --sbom build/sbom.cdx.json

format: $(VENV)/.installed ## put the code in its standard form
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

clean: ## remove what the commands above left behind
	rm -rf $(VENV) $(VENV_TORCH) $(VENV_WHEEL) $(VENV_OLDEST) $(VENV_AUDIT) $(VENV_FUZZ) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf metastore_db spark-warehouse derby.log
	find src tests benchmarks chaos examples fuzz scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: an environment is set up once and again when what it is made from changes. With a stamp in place
# no command needs a network.
$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	@$$(scripts/python.sh) -m venv $(VENV)
	@$(VENV)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[hyperparam,jax,notebook,python2,tensorflow,tensorflow1]' --group dev
	@touch $@

# Workers read Spark's Python modules out of its zip files, where otherwise each of them compiles them again.
%/.compiled: %/.installed tests/spark_modules.py
	@$*/bin/python -m tests.spark_modules
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

# The wheel's declared dependencies and nothing else; what builds it lies apart, where only the build finds it.
$(VENV_WHEEL)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV_WHEEL) (a few minutes the first time) ..."
	@rm -rf $(VENV_WHEEL)
	@$$(scripts/python.sh) -m venv $(VENV_WHEEL)
	@$(VENV_WHEEL)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV_WHEEL)/bin/python $(PIP) -c constraints.txt --target $(VENV_WHEEL)/builder hatchling
	@$(VENV_WHEEL)/bin/python $(PIP) -c constraints.txt .
	@touch $@

$(VENV_WHEEL)/.wheel: $(VENV_WHEEL)/.installed README.md LICENSE $(WHEEL_SOURCES)
	@rm -rf $(VENV_WHEEL)/dist
	@PYTHONPATH=$(VENV_WHEEL)/builder $(VENV_WHEEL)/bin/python -m pip --disable-pip-version-check wheel --quiet \
		--no-build-isolation --no-deps --no-index --wheel-dir $(VENV_WHEEL)/dist .
	@$(VENV_WHEEL)/bin/python $(PIP) --no-deps --no-index --force-reinstall $(VENV_WHEEL)/dist/*.whl
	@touch $@

# What audits is not among what is audited.
$(VENV_AUDIT)/.installed:
	@echo "Setting up $(VENV_AUDIT) ..."
	@$$(scripts/python.sh) -m venv $(VENV_AUDIT)
	@$(VENV_AUDIT)/bin/python $(PIP) 'pip-audit>=2.9'
	@touch $@

# Atheris beside everything that the tests have: it is no dependency of theirs.
$(VENV_FUZZ)/.installed: $(VENV)/.installed
	@echo "Setting up $(VENV_FUZZ) ..."
	@$$(scripts/python.sh) -m venv $(VENV_FUZZ)
	@$(VENV_FUZZ)/bin/python $(PIP) atheris==3.0.0
	@$(VENV)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> "$$($(VENV_FUZZ)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/tests_have.pth"
	@touch $@

$(VENV_OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	@echo "Setting up $(VENV_OLDEST) (a few minutes the first time) ..."
	@$$(scripts/python.sh) -m venv $(VENV_OLDEST)
	@$(VENV_OLDEST)/bin/python $(PIP) -c constraints.txt pip
	@$(VENV_OLDEST)/bin/python $(PIP) -c constraints-oldest.txt -e '.[hyperparam,jax,notebook]' --group dev
	@touch $@
