# Each target sets up .venv on first use, from the versions in constraints.txt. Another Python: make PYTHON=python3.13
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY := .venv/.ready
# Processes of tests.
WORKERS ?= 2
DOCS_READY := .venv/.ready-docs

# Kernel tests that also run uncompiled, and compiled with bounds checks.
KERNEL_TESTS := $(wildcard tests/*/test_rules.py tests/*/test_twins.py) tests/field/test_pools_and_words.py tests/core/test_shared.py tests/core/test_linking.py tests/traces/test_gpx.py

.PHONY: setup demo demo-node test test-all lint bench docs clean

setup: $(READY)
	@echo "ready: source .venv/bin/activate, then: serai --help"

demo: $(READY)
	@$(BIN)/serai demo

demo-node: $(READY)
	@$(BIN)/serai node demo

test: $(READY)
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup $(KERNEL_TESTS)
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 NUMBA_CACHE_DIR=.cache/boundscheck $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup $(KERNEL_TESTS)

test-all: export SERAI_THOROUGH = 1
test-all: test

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src tools
	$(BIN)/lint-imports
	$(BIN)/python tools/shape.py

bench: $(READY)
	$(BIN)/python benchmarks/field.py
	$(BIN)/python benchmarks/traces.py
	$(BIN)/python benchmarks/overlay.py
	$(BIN)/python benchmarks/opportunistic.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/matching.py
	$(BIN)/python benchmarks/pipeline.py --patient
	$(BIN)/python benchmarks/node.py

docs: $(DOCS_READY)
	$(BIN)/python tools/pictures.py
	$(BIN)/zensical build --clean --strict

clean:
	rm -rf .venv .cache site dist

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'serai needs Python 3.11 or later as "$(PYTHON)"; name another one with: make PYTHON=python3.12' >&2; exit 1; }
	@echo "setting up .venv (once, a minute or two) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) hatchling setuptools  # setuptools: Spark comes as source
	@$(PIP) --no-build-isolation --editable '.[dev]'
	@$(PIP) --no-deps pyD3TN  # a peer for tests: it pins an old cbor2, and works with a new one
	@$(PIP) --no-deps --no-build-isolation dtn7zero py-dtn7 netifaces || \
	  echo 'without dtn7zero, a peer for one test: its netifaces needs a C compiler' >&2
	@touch $@

$(DOCS_READY): $(READY)
	@$(PIP) --no-build-isolation --editable '.[dev,docs]'
	@touch $@
