# Every target sets up what it needs by itself; `make` alone lists them.
# A folder of local wheels is honoured: PIP_FIND_LINKS=/path/to/wheels make test

SHELL := bash
PYTHON ?= $(shell python3.11 -c 'import sys; print(sys.executable)' 2>/dev/null || echo python3)
TORCH := 2.13.0
VENV_PYTHON := .venv/bin/python
PEERS_PYTHON := .venv-peers/bin/python
UV := UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" .venv/bin/uv
# Two processes with one thread each: more threads than cores make the small tensors of the tests slower.
PYTEST := OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -n 2 --dist loadgroup
PEERS_PYTEST := OMP_NUM_THREADS=1 $(PEERS_PYTHON) -m pytest

# The studio's pages need Node 20.19 or newer. Without it all else works; `make test NPM=` does as if it were not there.
NPM := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' \
	2>/dev/null && command -v npm)
PAGES := src/mirada/studio/static/index.html
PAGE_SOURCES := $(shell find frontend/src frontend/public -type f) $(addprefix frontend/, \
	index.html package.json package-lock.json tsconfig.json vite.config.ts)
JOB := core throughput precision decoding engines busy scale_out startup
WITH_PAGES := $(if $(NPM),$(PAGES),no-pages)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pages lint bench docs studio no-pages constraints clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

demo: .venv/.core ## train a transformer and a CNN on handwritten digits, and report
	.venv/bin/mirada train digits

test: .venv/.dev test-pages ## the tests to run before every commit
	$(PYTEST) -m "not long and not peers"

# A suite that does not exist yet is skipped; one that exists and collects nothing fails (pytest's exit code 5).
test-all: .venv/.dev .venv-peers/.dev $(WITH_PAGES) ## the long tests, and parity with other libraries
	@if grep -rqE 'mark\.long\b' tests; then set -x; $(PYTEST) -m long; else echo "No long tests yet."; fi
	@if [ -d tests/peers ]; then set -x; $(PEERS_PYTEST) -m peers tests/peers; else echo "No tests/peers yet."; fi

lint: .venv/.dev ## style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv-peers/.dev ## measure speed against other libraries, on an idle machine; one job: make bench JOB=decoding
	@set -e; for job in $(JOB); do set -x; $(PEERS_PYTHON) benchmarks/$$job.py; { set +x; } 2>/dev/null; done
	@$(PEERS_PYTHON) benchmarks/goals.py

docs: .venv/.docs $(WITH_PAGES) ## build the documentation into site/
	.venv/bin/mkdocs build --strict

studio: $(WITH_PAGES) ## build the pages of the studio

test-pages: $(WITH_PAGES)
	@if [ -n "$(NPM)" ]; then set -x; $(NPM) --prefix frontend test --silent; fi

no-pages:
	@echo "There is no npm with Node 20.19 or newer: the studio's pages are not built, and its browser tests are skipped."

$(PAGES): $(PAGE_SOURCES) | frontend/node_modules/.package-lock.json
	$(NPM) --prefix frontend run build --silent

# Not `npm ci`: it wants the builds for all other systems in the lock file, which not every registry has.
frontend/node_modules/.package-lock.json: frontend/package-lock.json
	$(NPM) --prefix frontend install --no-save --loglevel=error
	@touch $@

# `make constraints UPGRADE=--upgrade` moves every pin but torch to its newest version.
COMPILE = $(UV) pip compile pyproject.toml --quiet --python-version 3.11 $(UPGRADE) -c <(echo torch==$(TORCH)) \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
# The same pins serve every build of torch: no "+cpu", and none of the packages that only a CUDA build brings.
UNBUILD = sed -i -E '/^(nvidia|cuda|triton)/d; s/^(torch(vision)?==[^+]*)\+.*/\1/'

constraints: .venv/bin/uv ## pin every package again
	$(COMPILE) --extra all --extra dev --extra docs -o constraints.txt
	$(UNBUILD) constraints.txt
	$(COMPILE) --extra dev --extra peers -c constraints.txt -o constraints-peers.txt
	$(UNBUILD) constraints-peers.txt

clean: ## remove environments, caches and built files
	rm -rf frontend/node_modules src/mirada/studio/static
	rm -rf .venv .venv-peers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
	find src tests -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/uv:
	$(PYTHON) -m venv .venv
	$(VENV_PYTHON) -m pip install --quiet uv

# Each stamp says that its extra was installed after the last change of the project's requirements.
.venv/.core: EXTRA :=
.venv/.dev: EXTRA := [dev]
# Tests start hundreds of processes, each of which would compile what it imports where Python may not write that down.
.venv/.dev .venv-peers/.dev: export UV_COMPILE_BYTECODE := 1
.venv/.docs: EXTRA := [docs]
.venv/.core .venv/.dev .venv/.docs: pyproject.toml constraints.txt | .venv/bin/uv
	$(UV) pip install --quiet --python $(VENV_PYTHON) -c constraints.txt -e ".$(EXTRA)"
	@touch $@

.venv-peers/.dev: pyproject.toml constraints-peers.txt | .venv/bin/uv
	$(PYTHON) -m venv --without-pip .venv-peers
	$(UV) pip install --quiet --python $(PEERS_PYTHON) -c constraints-peers.txt -e ".[dev,peers]"
	@touch $@
