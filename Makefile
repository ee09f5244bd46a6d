# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin
PROTOS := $(shell find protos -name '*.proto')

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: .venv/.stamp services/gen/.stamp  ## Virtual environment with all dependencies, and the generated code

gen: services/gen/.stamp  ## Generate Python from protos/

lint: setup  ## Format, types, import layers, protos
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy services parser_svc planner_svc applier_svc stack_svc tests bench protos
	$(BIN)/lint-imports
	cd protos && ../$(BIN)/buf lint

test: setup  ## Run the tests; ARGS go to pytest
	$(BIN)/pytest $(ARGS)

test-faults: setup  ## Every crash and every fault that an apply has to survive, not only a sample: twenty minutes
	$(BIN)/pytest --faults tests/crash tests/applier $(ARGS)

quickstart: setup  ## Start everything, apply examples/ twice, stop everything
	examples/quickstart.sh $(BIN)

demo-crash: setup  ## Kill the applier in the middle of an apply, and see it finished
	$(BIN)/python examples/demo_crash.py

bench: setup  ## Print benchmark figures; ARGS go to it, such as --parsing
	$(BIN)/python -m bench $(ARGS)

.venv/.stamp: pyproject.toml protos/generate.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

services/gen/.stamp: .venv/.stamp $(PROTOS) protos/generate.py
	$(BIN)/python protos/generate.py
	@touch $@

.PHONY: help setup gen lint test test-faults quickstart demo-crash bench
