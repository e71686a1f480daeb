# Everything runs in the project's own virtual environment; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check validate docs format clean

help: ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

setup: $(READY) ## Set up the virtual environment

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ldpaudit needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## Audit an honest and a dishonest release of the embedded sample
	$(BIN)/ldpaudit demo

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile -m 'not validate'

check: $(READY) ## Check format, lint, types, layers and the wheel
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/check_wheel.py

validate: $(READY) ## Run the long statistical validation
	$(BIN)/python -m pytest -n auto -m validate

docs: $(READY) ## Build the documentation: build/site/index.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python docs/generated.py
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/site-cache . build/site
	@echo "Open build/site/index.html in a browser."

format: $(READY) ## Format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
