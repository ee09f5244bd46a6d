# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin
PROTOS := $(shell find protos/pkger -name '*.proto')

# Tests and services start many processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: .venv/.stamp services/gen/.stamp  ## Virtual environment with all dependencies, and the generated code

gen: services/gen/.stamp  ## Generate Python from protos/

lint: setup lint-protos docs  ## Format, types, import layers, names, protos, documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy services parser_svc planner_svc applier_svc stack_svc tests bench protos docgen lint
	$(BIN)/lint-imports
	$(BIN)/python -m lint.names

# The contracts are compared with a committed image, as a checkout may have no git history. The second comparison is the reverse:
# it fails when the image lacks a part of the contracts, which would then be unprotected. Imported protos are not compared.
lint-protos: setup  ## Only the protos: style and breaking changes
	cd protos && ../$(BIN)/buf lint
	cd protos && ../$(BIN)/buf breaking --path pkger --against image.binpb
	@cd protos && ../$(BIN)/buf build --path pkger --output - | ../$(BIN)/buf breaking image.binpb --against - >/dev/null || \
		{ echo 'protos/image.binpb lacks a part of the contracts. Run `make contracts` and commit it.' >&2; false; }

contracts: setup  ## Update protos/image.binpb; BREAKING=1 accepts breaking changes
	$(if $(BREAKING),,cd protos && ../$(BIN)/buf breaking --path pkger --against image.binpb)
	cd protos && ../$(BIN)/buf build --path pkger --exclude-source-info --output image.binpb

# On up to four cores. A module stays on one of them where possible, as its tests share services. The memory of a large test goes
# back to the system: by default, glibc keeps large blocks in its heap once it has seen some (mallopt(3), M_MMAP_THRESHOLD).
PYTEST := MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_ARENA_MAX=2 \
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test: setup  ## Run the quick tests, in five minutes; ARGS go to pytest
	$(PYTEST) -m 'not slow' $(ARGS)

# One process more than there are cores: many of these tests wait, for leases and for processes that start.
test-slow: setup  ## Run the tests marked slow, and laws with more examples; ARGS go to pytest
	$(PYTEST) --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -m 'slow or hypothesis' --hypothesis-profile thorough $(ARGS)

test-all: setup  ## Run all tests, laws with more examples; ARGS go to pytest
	$(PYTEST) --hypothesis-profile thorough $(ARGS)

# The simulation starts at the first of the day's 100,000 seeds. MINUTES=n sets its length; FIRST=n starts at another seed.
test-faults: MINUTES := $(or $(MINUTES),10)
test-faults: FIRST := $(or $(FIRST),$(shell date +%Y%m%d00000))
test-faults: setup  ## Tests with --faults: all crashes and faults of an apply, then 10 minutes of simulation
	$(PYTEST) --faults --hypothesis-profile thorough \
		tests/action_sets tests/applier tests/cli tests/clients tests/crash tests/apply tests/drivers/influxdb tests/export tests/gateway \
		tests/kinds tests/parser tests/rpc tests/simulation tests/stack $(ARGS)
	@echo 'To search these seeds again: make simulate MINUTES=$(MINUTES) FIRST=$(FIRST)'
	@$(BIN)/python -m tests.simulation --minutes '$(MINUTES)' --first '$(FIRST)'

# SEED=n TRACE=1 | SEED=n REDUCE=CONTENT | SCENARIO=file.json [TRACE=1] | MINUTES=10 [FIRST=n], each with FEATURES=kills,net | all; SAVE=file.json
simulate: setup  ## Simulate interleavings, crashes and faults from seeds, in one process (docs/simulation.md)
	@$(BIN)/python -m tests.simulation $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)') \
		$(if $(FIRST),--first '$(FIRST)') $(if $(FEATURES),--features '$(FEATURES)') $(if $(TRACE),--trace) \
		$(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(SAVE),--save '$(SAVE)') $(if $(REDUCE),--reduce '$(REDUCE)')

# MUTATION=name for one of them, with REDUCE=1 | SCENARIO=file.json; SAVE=file.json
simulate-mutations: setup  ## Put known defects into copies of the code, one at a time; the simulation must find each
	@$(BIN)/python -m tests.simulation.mutation_search $(MUTATION) $(if $(REDUCE),--reduce) \
		$(if $(SCENARIO),--scenario '$(SCENARIO)') $(if $(SAVE),--save '$(SAVE)')

reference: setup  ## Write the generated parts of docs/reference
	$(BIN)/python -m docgen

docs: setup  ## Build the site of the documents in dist/site; a dead link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict 2>&1 | { ! grep -v '^INFO'; } && test -f dist/site/index.html

pictures: setup  ## Make the terminal pictures of the documents from real runs
	$(BIN)/python -m docgen.pictures

quickstart: setup  ## Start everything, apply examples/ twice, stop everything
	examples/quickstart.sh $(BIN)

demo-crash: setup  ## Kill the applier during an apply, and see the operation finished
	$(BIN)/python examples/demo_crash.py

demo-backup: setup  ## Back a stack up, restore it and delete the backup, and kill the applier during each
	$(BIN)/python examples/demo_backup.py

bench: setup  ## Print benchmark figures; ARGS go to it, such as --parsing
	$(BIN)/python -m bench $(ARGS)

.venv/.stamp: pyproject.toml protos/generate.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@touch $@

services/gen/.stamp: .venv/.stamp $(PROTOS) protos/generate.py
	$(BIN)/python protos/generate.py
	@touch $@

.PHONY: help setup gen lint lint-protos contracts reference docs pictures test test-slow test-all test-faults simulate simulate-mutations quickstart demo-crash demo-backup bench
