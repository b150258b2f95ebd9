# Every target prepares what it needs: a virtual environment in .venv, rebuilt when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST_ARGS ?= -n 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs wheel clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" scripts/setup.sh
	@touch $@

demo: $(STAMP) ## write the worked example in real file formats and diagnose it
	$(BIN)/scopedown demo -o demo-case
	@echo 'in this checkout, scopedown is $(BIN)/scopedown (or: source $(BIN)/activate)'

test: lint ## linter, types and all tests
	$(BIN)/pytest -rs $(PYTEST_ARGS)

lint: $(STAMP) ## linter, formatting and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## put the code into the one format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(STAMP) ## write the pages and the schema that are generated from the code
	$(BIN)/python scripts/make_docs.py

wheel: $(STAMP) ## build dist/*.whl
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

clean: ## remove what the targets made
	rm -rf $(VENV) dist build demo-case
