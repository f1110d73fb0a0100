# `make demo` and `make test` are all the set-up there is: each makes what it needs first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
UV     := $(VENV)/.lock
# Bytecode is kept also where the surroundings ask for none: else each process of the tests compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Tests run in one process per core, and in a single one, for a debugger, with WORKERS=0.
WORKERS ?= auto
TESTS   := $(BIN)/pytest -q -n $(WORKERS) --maxprocesses=8 --dist=worksteal
# How many examples properties are tried on, where there is time for it (tests/exploration.py).
HYPOTHESIS_PROFILE ?= full

# Says what a target does, and how long it took. $(1) is the sentence, $(2) the command.
define step
	@echo "== $(1)"; start=$$(date +%s); { $(2); }; status=$$?; echo "== done in $$(( $$(date +%s) - start )) s (exit $$status)"; exit $$status
endef

.PHONY: help demo test test-all lint test-cluster controlplane cluster-up cluster-down image image-tools test-image bench bench-cluster coverage lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): requirements/dev.txt pyproject.toml
	@echo "== a virtual environment in $(VENV), from hash-pinned requirements"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ruleop needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version). Say which to use: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)  ## check, render and plan the App example
	$(call step,the App example: check it / render it / plan it,./bench/demo.sh $(BIN)/ruleop)

test: $(STAMP)  ## the fast tests, no cluster needed
	$(call step,the fast tests,$(TESTS) -m "not slow")

test-all: $(STAMP)  ## the slow ones too, and properties on more examples
	$(call step,all tests without a cluster,$(TESTS) --hypothesis-profile=$(HYPOTHESIS_PROFILE))

coverage: $(STAMP)  ## the fast tests, with the branch coverage of each room
	$(call step,the fast tests with branch coverage,$(BIN)/pytest -q -m "not slow" --cov --cov-report=term-missing:skip-covered)

lint: $(STAMP)  ## ruff, mypy strict, import-linter
	$(call step,ruff,$(BIN)/ruff check . && $(BIN)/ruff format --check .)
	$(call step,mypy --strict,$(BIN)/mypy)
	$(call step,import-linter,$(BIN)/lint-imports)

controlplane:  ## build the real control plane for the tests (about ten minutes the first time)
	$(call step,the control plane,$(PYTHON) tests/controlplane/up.py build)

test-cluster: $(STAMP) controlplane  ## the tests against a real API server
	$(call step,the tests against a real control plane,$(BIN)/pytest -q --hypothesis-profile=$(HYPOTHESIS_PROFILE) --override-ini addopts="--strict-markers --strict-config -ra --import-mode=importlib" tests/cluster)

cluster-up: controlplane  ## a real control plane for people, with a kubeconfig
	@$(PYTHON) tests/controlplane/up.py up

cluster-down:  ## stop it
	@$(PYTHON) tests/controlplane/up.py down

image:  ## build the generic image with buildah, podman or docker (BUILDER=, IMAGE=, BASE=)
	@BUILDER="$(BUILDER)" IMAGE="$(IMAGE)" BASE="$(BASE)" ./image/build.sh

# Said before anything is made.
image-tools:
	@BASE="$(BASE)" ./image/missing.sh

test-image: image-tools $(STAMP)  ## build the image and run it as a pod against the control plane (root, buildah, runc, debootstrap; BASE=)
	@$(MAKE) --no-print-directory controlplane
	$(call step,the image as a pod,BASE="$(BASE)" $(BIN)/pytest -q -s --override-ini addopts="--strict-markers --strict-config --import-mode=importlib" tests/cluster/image/as_a_pod.py)

bench: $(STAMP)  ## render, plan, merge and load times beside their budgets
	$(call step,the benchmarks,$(BIN)/python bench/core.py)

bench-cluster: $(STAMP) controlplane  ## the operator beside a bare client and a hand-written Go operator
	$(call step,the operator on a real API server,$(BIN)/python bench/cluster.py)

lock:  ## write requirements/*.txt anew from pyproject.toml
	@$(PYTHON) -m venv $(UV) && $(UV)/bin/pip install --quiet uv
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal pyproject.toml --extra certificates -o requirements/run.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal pyproject.toml --extra certificates --group dev -o requirements/dev.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal --group build -o requirements/build.txt

clean:  ## remove the virtual environment and all caches of the project
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find ruleop tests bench -name __pycache__ -prune -exec rm -rf {} +
