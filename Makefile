# The first target that needs it creates a virtual environment in .venv. Only make and Python >= 3.11
# are required. PYTHON=/path/to/python chooses another interpreter.

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

ROWS ?= 100000
COLUMNS ?= 1000
REPEATS ?= 5
VARIANCES ?= 0.0001 0.001 0.0042 0.01 0.1

.PHONY: demo test test-all portability check bench browser postgresql pictures plots docs links format clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    run a complete study of a real cohort and write its report"
	@echo "make test    run tests and doctests, except those marked slow: 15 minutes on two cores"
	@echo "make test-all run every test and doctest"
	@echo "make portability  check that code compiled for other processors gives the same verdicts"
	@echo "make check   run ruff and mypy --strict"
	@echo "make bench   measure fits, cross-validation, paths and the steps of a study; ROWS=1000000"
	@echo "make browser install a Chromium for tests that open reports, which are skipped without one"
	@echo "make postgresql install PostgreSQL for tests of databases, which are skipped without it"
	@echo "make pictures draw the pictures of docs/tutorial.md and docs/report.md again; needs the Chromium"
	@echo "make plots   draw the pictures of docs/plots.md again"
	@echo "make docs    build the documentation site in build/site, with warnings as errors"
	@echo "make links   visit the addresses that the documentation links to; needs a network"
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
	$(BIN)/riskset bench dense --work fit:$(ROWS)x20 --work path:300x2000x100 --repeats $(REPEATS) \
	    --out bench-output
	$(BIN)/riskset bench study --out bench-output

# From the system if apt-get may install it, otherwise from playwright.
browser: $(VENV)/.dev
	command -v chromium || apt-get install --yes --no-install-recommends chromium || \
	    $(BIN)/python -m playwright install --with-deps chromium

# The tests start a server of their own. Debian's package would start another one at once.
postgresql:
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	    mkdir -p /etc/postgresql-common && \
	    echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf && \
	    apt-get install --yes --no-install-recommends postgresql; \
	}

pictures: $(VENV)/.dev
	$(BIN)/python docs/pictures.py

plots: $(VENV)/.dev
	$(BIN)/python docs/plots.py

SPHINX := $(BIN)/python -m sphinx --quiet

docs: $(VENV)/.docs
	rm -rf docs/api/generated
	$(SPHINX) --builder html --fail-on-warning --keep-going docs build/site
	@echo "The site begins with build/site/index.html"

links: $(VENV)/.docs
	$(SPHINX) --builder linkcheck docs build/links

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format src tests bench

clean:
	rm -rf docs/api/generated
	rm -rf $(VENV) build dist demo-output bench-output
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Uses PYTHON if it is set, otherwise the first interpreter on PATH that is new enough.
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

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[docs]"
	@touch $@ $(VENV)/.run
