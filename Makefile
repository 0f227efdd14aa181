# Everything that a newcomer needs: `make demo` and `make test`. Both set up .venv first; a second call is quick.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: api demo docs docs-examples docs-site forecast release sessions study test test-all test-pythons fuzz lint mutants same-behaviour install clean

demo: install
	$(BIN)/efhorizon demo

# The published tables and figures, byte for byte, from the committed rows.
study: install
	$(BIN)/efhorizon evaluate data/study --publish docs/study --resamples 10000

# The model behind forecasts and the table that says how good it is, byte for byte, from the committed rows.
forecast: install
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/support/forecast_model.py --write

# The reference of all public names, from their docstrings.
api: install
	$(BIN)/python tests/support/api_reference.py --write

# The web site, in build/site: pages, equations, gallery and report, with every link checked, and the pages' examples run.
docs: install
	$(MAKE) --no-print-directory --jobs 2 --output-sync docs-examples docs-site

docs-examples:
	$(BIN)/pytest -n 0 tests/test_docs.py tests/library/test_library_docs.py tests/docs

docs-site:
	$(BIN)/python docs/site/build.py

# The terminal sessions in the pages, typed and run by a script.
sessions: install
	$(BIN)/python docs/site/sessions.py

# Wheel and sdist in dist/, checked, and each extra tried in an empty environment. It takes some minutes.
release:
	.ci/release

test: install lint
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

test-all: install lint
	$(BIN)/pytest -m "" -n auto --maxprocesses 4 --dist worksteal

# The core on Python 3.12 and 3.13 with the newest numpy, as far as this machine has them.
test-pythons:
	.ci/core-tests

# Damaged files for every command that reads them: docs/trust.md. It takes some minutes.
fuzz: install
	$(BIN)/python -m tests.fuzz --one

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Small errors put into the core one by one: do the tests notice? See docs/mutants.md; ARGS="--help" lists options.
mutants: install
	cd tests/support && ../../$(BIN)/python -m mutants $(ARGS)

# The answer to the question of tests/test_behaviour.py: the source changed, what it computes did not.
same-behaviour: install
	$(BIN)/python tests/support/behaviour.py --confirm

install: .venv/installed

.venv/installed: requirements.lock pyproject.toml
	@echo "Setting up .venv with pinned packages: a minute or two, the first time only."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf .venv .venv-* tables demo build dist .mypy_cache .ruff_cache .pytest_cache
