# Every command makes what it needs first. `make` alone lists them.

PYTHON ?= python3
STAGE ?= dev
# pytest's workers: a number, `logical` (one a core), or 0 for none.
WORKERS ?= logical
# More words for the command at hand.
ARGS ?=

UV_VERSION := 0.13.9
UV := .tools/bin/uv
UV_READY := .tools/uv-$(UV_VERSION)
PY := .venv/bin/python
READY := .venv/.ready

# uv takes the Python it is given and never fetches one, and trusts what this machine trusts, as pip does.
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format docs bench package deploy requirements clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: $(READY) ## everything on this machine, with a stand-in booking site: http://127.0.0.1:8000
	@$(PY) -m chalicelib demo $(ARGS)

test: $(READY) ## all tests, on SQLite and PostgreSQL (ARGS="tests/stays -x" for some, WORKERS=0 for a debugger)
	@$(PY) -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal $(ARGS)

lint: $(READY) ## style, types, who may import whom, migrations against models
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m basedpyright
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m pytest -q tests/db/test_migrations.py -k metadata

format: $(READY) ## mend what ruff can mend
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

docs: $(READY) ## the pages that are made from the code
	@$(PY) -m tools.docs

bench: $(READY) ## benchmarks, each beside its bare baseline
	@$(PY) -m bench $(ARGS)

# Chalice wants a region even where it calls nobody.
package: export AWS_DEFAULT_REGION ?= us-east-1
package: $(READY) ## what would be deployed, into build/ (STAGE=dev)
	@.venv/bin/chalice package --stage $(STAGE) $(ARGS) build

deploy: $(READY) ## to AWS with your credentials and region (STAGE=dev)
	@.venv/bin/chalice deploy --stage $(STAGE) $(ARGS)

setup: $(READY) ## the environment alone, in .venv (PYTHON=python3.12 for another Python)

# The development file comes first: requirements.txt takes its versions from it.
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--custom-compile-command 'make requirements' $(ARGS)
requirements: $(UV_READY) ## pin the newest that the .in files allow (ARGS=--upgrade), else only what changed in them
	@$(COMPILE) requirements-dev.in -o requirements-dev.txt
	@$(COMPILE) requirements.in -c requirements-dev.txt -o requirements.txt

clean: ## drop what was made, but not .data
	@rm -rf .venv .tools build .pytest_cache .ruff_cache .import_linter_cache .hypothesis .chalice/deployments
	@find . -name __pycache__ -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------

# uv lives apart, since a sync removes from .venv what is not pinned for it.
$(UV_READY):
	@$(PYTHON) -c "$$CHECK_PYTHON" $(PYTHON)
	@echo "setting up: uv $(UV_VERSION)"
	@rm -rf .tools && $(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(READY): requirements-dev.txt | $(UV_READY)
	@$(SAME_PYTHON) || { $(PYTHON) -c "$$CHECK_PYTHON" $(PYTHON) && rm -rf .venv && $(PYTHON) -m venv --without-pip .venv; }
	@echo "setting up: packages of requirements-dev.txt"
	@$(UV) pip sync --quiet --require-hashes --python $(PY) requirements-dev.txt
	@touch $@

# An environment once made is kept, whatever `python3` becomes, until a PYTHON of another version is asked for.
ifeq ($(origin PYTHON),file)
SAME_PYTHON = $(PY) -c '' 2>/dev/null
else
MINOR := -c 'import sys; print(sys.version_info[:2])'
SAME_PYTHON = test "$$($(PY) $(MINOR) 2>/dev/null)" = "$$($(PYTHON) $(MINOR))"
ifeq ($(shell $(SAME_PYTHON) 2>/dev/null || echo no),no)
.PHONY: $(READY)
endif
endif

define CHECK_PYTHON
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit("Sitebell runs on Python 3.11, 3.12 and 3.13, and %s is %d.%d.\nName another: make setup PYTHON=python3.12" % ((sys.argv[1],) + sys.version_info[:2]))
endef
export CHECK_PYTHON
