# One command each: setup, plan, test, lint, bench. Needs python3, python3-venv, make and git; nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
COMPILE := $(UV) pip compile --quiet --generate-hashes --python-version 3.11 --custom-compile-command "make pins"
SAMPLE := build/sample/frameworks
ARGS ?=
# One more than there are cores: many a test waits for a server or a child process.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
# As pip does: behind a proxy with a certificate authority of its own, the bundled ones would not do.
export UV_SYSTEM_CERTS := 1
# Hundreds of tests start a Python of their own: where images forbid it to keep what it compiled, each compiles anew.
unexport PYTHONDONTWRITEBYTECODE

# Whatever may delete is covered to the last branch. Files that do not exist yet are passed over;
# `make test COVER100=` leaves the gate out while a module is being written.
COVER100 := lifecycle/core/*.py lifecycle/flows/handlers.py lifecycle/flows/apply.py lifecycle/flows/recover.py lifecycle/flows/site.py lifecycle/flows/skew.py \
  lifecycle/flows/slimming.py lifecycle/layouts/slim.py \
  lifecycle/flows/alive.py lifecycle/layouts/conduct.py lifecycle/layouts/pace.py lifecycle/layouts/signs.py \
  lifecycle/flows/fills.py lifecycle/flows/tick.py lifecycle/flows/consents.py lifecycle/index/consents.py lifecycle/flows/turn.py \
  lifecycle/stores/posix_trash.py lifecycle/stores/posix_entry.py lifecycle/stores/posix_purge.py lifecycle/stores/extents.py \
  lifecycle/stores/posix_intake.py lifecycle/stores/posix_stage.py lifecycle/stores/posix_copy.py \
  lifecycle/stores/posix_sitting.py lifecycle/stores/union*.py lifecycle/stores/shared.py lifecycle/stores/s3_many.py \
  lifecycle/stores/s3_trash.py lifecycle/stores/s3_delete.py lifecycle/stores/s3_shelf.py \
  lifecycle/stores/s3_intake.py lifecycle/stores/s3_classes.py lifecycle/stores/gcs_*.py \
  lifecycle/stores/cloud.py lifecycle/stores/textfile.py lifecycle/stores/cache_*.py lifecycle/flows/cache.py lifecycle/flows/reclass.py lifecycle/stores/plan_files.py \
  lifecycle/sizing/room.py

.PHONY: help setup plan test lint format pytest coverage explore soak soak-ticks oracles test-frameworks bench pins clean

help:
	@echo "make setup            virtual environment with everything the tests need"
	@echo "make plan [ROOT=DIR]  what would be kept and dropped in DIR (default: a sample); changes nothing there"
	@echo "make test             lint, all tests, coverage gate"
	@echo "make test-frameworks  real frameworks train, we retire, they resume; FRAMEWORKS=hf_trainer,... for some"
	@echo "make lint | format | pytest | coverage | explore | soak | soak-ticks | oracles | bench | pins | clean"

$(UV):
	@$(PYTHON) -m venv .venv || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check uv

# Two stamps: the quick one has what a user runs, the full one what a developer runs.
.venv/.base: requirements.txt pyproject.toml | $(UV)
	@$(INSTALL) --require-hashes -r requirements.txt
	@$(INSTALL) --no-deps -e .
	@touch $@

.venv/.dev: requirements-dev.txt pyproject.toml | $(UV)
	@$(INSTALL) --require-hashes -r requirements-dev.txt
	@$(INSTALL) --no-deps -e .
	@touch $@ .venv/.base

setup: .venv/.dev

build/sample/.unpacked: tests/data/frameworks.tar.gz
	@rm -rf build/sample && mkdir -p build/sample
	@tar xpf $< -C build/sample
	@touch $@

ifdef ROOT
plan: .venv/.base
	@$(BIN)/lifecycle plan --root "$(ROOT)" $(ARGS)
else
plan: .venv/.base build/sample/.unpacked
	@$(BIN)/lifecycle plan --root $(SAMPLE) --policy policies/sample.yaml $(ARGS)
endif

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pytest: setup
	@rm -f .coverage .coverage.*
	$(BIN)/pytest -n $(WORKERS) --cov --cov-report= $(ARGS)

coverage: setup
	@files=; for file in $(COVER100); do if [ -e "$$file" ]; then files+="$${files:+,}$$file"; fi; done; \
	if [ -z "$$files" ]; then echo "coverage gate: none of its files exist yet"; exit 0; fi; \
	$(BIN)/coverage report --fail-under=100 --include="$$files"

# In this order, also under make -j: a failed lint is cheaper than a failed test.
test:
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory pytest
	@$(MAKE) --no-print-directory coverage

# The laws, by chance and for longer: what they find becomes a test of its own.
explore: setup
	LIFECYCLE_LAWS=explore $(BIN)/pytest -n $(WORKERS) tests/core tests/sizing tests/layouts $(ARGS)

# A thousand simulated clusters, each from its number; one that fails prints how to see it again. See docs/soak.md.
SEEDS ?= 0-999
soak: setup
	$(BIN)/python -m tests.soak $(SEEDS)

# Ticks in one process, over a world at rest and over one that changes: nothing may grow but what is stored.
TICKS ?= 10000
soak-ticks: setup
	LIFECYCLE_TICKS=$(TICKS) $(BIN)/pytest -s --timeout 0 tests/soak/test_growth.py $(ARGS)

# The real Orbax (0.5 GB, in a Python of its own), restic and borg: records tests/data/oracles anew, then asks them
# about histories that nobody has seen. Takes minutes. See docs/oracles.md.
SEED ?= $(shell date +%j%H%M)
oracles: setup
	@[ -e build/oracles/bin/python ] || $(UV) venv -q build/oracles
	@$(UV) pip install --quiet --python build/oracles/bin/python orbax-checkpoint
	$(BIN)/python -m tests.oracles record $(ARGS)
	$(BIN)/python -m tests.oracles fuzz $(SEED) $(ARGS)

# Each in an environment of its own below build/frameworks: some GB, all in all. See docs/compatibility.md.
FRAMEWORKS ?= all
test-frameworks: setup
	LIFECYCLE_FRAMEWORKS=$(FRAMEWORKS) $(BIN)/pytest -v tests/frameworks $(ARGS)

bench: setup
	@found=; for file in bench/bench_*.py; do \
	  [ -e "$$file" ] || continue; found=1; \
	  $(BIN)/python -m "bench.$$(basename "$$file" .py)" $(ARGS); \
	done; [ -n "$$found" ] || echo "no benches yet"

# Hashes, but no index address: where packages come from is the installer's business.
pins: $(UV)
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --extra test --extra fast --extra postgres --extra dask --extra gcs --extra azure --extra charts --extra web -c requirements.txt -o requirements-dev.txt
	$(COMPILE) pyproject.toml --extra fast --extra postgres --extra gcs --extra azure --extra web -c requirements-dev.txt -o deploy/requirements.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "uv", sep="\n")' \
	  | $(COMPILE) - -o deploy/requirements-build.txt

clean:
	rm -rf .venv build dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
