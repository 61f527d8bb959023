# Every target sets up its own virtual environment in .venv on first use; nothing else is needed
# than make and Python >= 3.11. PYTHON=/path/to/python chooses another interpreter.

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

ROWS ?= 100000
COLUMNS ?= 1000
REPEATS ?= 5
VARIANCES ?= 0.0001 0.001 0.0042 0.01 0.1

.PHONY: demo test test-all portability check bench browser pictures format clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    a whole study of a real cohort, with its report: a treatment effect, five ways"
	@echo "make test    the tests and doctests, without those marked slow: 5 minutes on two cores"
	@echo "make test-all every test and doctest"
	@echo "make portability  hard problems as other processors solve them, with the same verdicts"
	@echo "make check   ruff and mypy --strict"
	@echo "make bench   time and memory of fits, cross-validation and the steps of a study; ROWS=1000000"
	@echo "make browser a Chromium, in which the tests open reports; without one they are skipped"
	@echo "make pictures those of docs/tutorial.md, from the reports of its studies; needs the Chromium"
	@echo "make format  let ruff rewrite the sources"
	@echo "make clean   remove everything the other targets made"

demo: $(VENV)/.run
	$(BIN)/riskset demo --out demo-output

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m "not slow"

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

portability: $(VENV)/.dev
	$(BIN)/python tests/portability.py

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy

bench: $(VENV)/.run
	$(BIN)/riskset bench fixed --rows $(ROWS) --columns $(COLUMNS) --repeats $(REPEATS) \
	    --out bench-output
	for repeats in 1 10; do \
	    $(BIN)/riskset bench crossval --rows $(ROWS) --columns $(COLUMNS) --repeats $$repeats \
	        $(VARIANCES:%=--variance %) --out bench-output/10x$$repeats || exit 1; \
	done
	$(BIN)/riskset bench bootstrap --rows $(ROWS) --columns $(COLUMNS) --out bench-output
	$(BIN)/riskset bench study --out bench-output

# That of the system where apt-get may install it, else one that playwright fetches.
browser: $(VENV)/.dev
	command -v chromium || apt-get install --yes --no-install-recommends chromium || \
	    $(BIN)/python -m playwright install --with-deps chromium

pictures: $(VENV)/.dev
	$(BIN)/python docs/pictures.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format src tests bench

clean:
	rm -rf $(VENV) build dist demo-output bench-output
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# An interpreter named PYTHON is taken at its word; else the first one on PATH that is new enough.
$(BIN)/python:
	@for python in $(CANDIDATES); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Setting up $(VENV) with $$($$python --version)"; \
	        $$python -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	        exit 0; \
	    fi; \
	done; \
	echo "riskset needs Python 3.11 or newer, and none of these is: $(CANDIDATES)." >&2; \
	echo "Install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12" >&2; \
	exit 1

# Stamps, so that an installation is repeated only when the dependencies change.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.run
