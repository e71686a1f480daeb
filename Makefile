# Everything runs in the project's own virtual environment; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
MINUTES ?= 10
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types layers security wheel sbom validate core fuzz mutate docs format clean

help: ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

setup: $(READY) ## Set up the virtual environment with the development tools

# What somebody who uses ldpaudit needs: the demo installs no more than this.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ldpaudit needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV) || { \
		echo "Python cannot make a virtual environment: on Debian and Ubuntu, install python3-venv." >&2; exit 1; }
	@echo "Installing ldpaudit in $(VENV) (a download of about 200 MB, the first time) …"
	@$(PIP) --upgrade pip
	@$(PIP) --editable .
	@touch $@

$(READY): $(INSTALLED)
	@echo "Adding the development tools and PyTorch …"
	@$(PIP) --editable '.[dev]'
	@touch $@

demo: $(INSTALLED) ## Audit an honest and a dishonest release of the embedded sample
	@$(BIN)/ldpaudit demo

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile -m 'not validate'

# The longest first: side by side, none of them runs alone at the end.
check: core types wheel security lint layers ## Check format, lint, types, layers, security, the wheel, and the core alone

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

security: $(READY)
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive ldpaudit attacks reports datasets
	$(BIN)/python tests/check_dependencies.py

wheel: $(READY)
	$(BIN)/python tests/check_wheel.py

core: $(READY) ## Run the core's tests in a copy without the extras
	$(BIN)/python tests/core_alone.py

sbom: $(READY) ## List what an installation pulls in, as CycloneDX: build/ldpaudit.cdx.json
	$(BIN)/python tests/check_dependencies.py --sbom build/ldpaudit.cdx.json

validate: $(READY) ## Run the long statistical validation
	$(BIN)/python -m pytest -n auto -m 'validate or hypothesis' --hypothesis-profile=validate

SAMPLE ?= 300
SEED ?= 1

mutate: $(READY) ## Put SAMPLE small faults into the code, and list those that no test notices
	$(BIN)/python tests/mutate.py --sample $(SAMPLE) --seed $(SEED)

fuzz: $(READY) ## Fuzz every parser of foreign input (MINUTES=10; Linux)
	@$(PIP) --editable '.[fuzz]'
	PYTHONPATH=tests nice -n 19 $(BIN)/python -m fuzz.run --minutes $(MINUTES)

docs: $(INSTALLED) ## Build the documentation: build/site/index.html (STRICT=1: warnings are errors)
	@$(PIP) --editable '.[docs]'
	$(BIN)/python docs/site/generated.py
	$(BIN)/python -m sphinx --quiet --jobs auto $(if $(STRICT),--fresh-env --fail-on-warning) \
		-c docs/site -d build/site-cache . build/site
	@echo "Open build/site/index.html in a browser."

format: $(READY) ## Format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
