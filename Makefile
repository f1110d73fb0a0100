# No set-up is needed: `make demo` and `make test` first create what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
UV     := $(VENV)/.lock
SPHINX := $(VENV)/.site
# Keep bytecode even where the environment turns it off: otherwise each test process compiles everything that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Tests run in as many processes as there are cores; in a single one, for a debugger, with WORKERS=0.
WORKERS ?= auto
CORES   := $(shell getconf _NPROCESSORS_ONLN)
# All examples of each property: at random, or `repeatable` (tests/exploration.py).
PROPERTIES ?= full
TESTS   := $(BIN)/pytest -q -n $(patsubst auto,$(CORES),$(WORKERS)) --maxprocesses=8 --dist=worksteal
FAST    := $(TESTS) -m "not slow" --few-cases
ALL     := $(TESTS) --hypothesis-profile=$(PROPERTIES)
# Much of the time of these is waiting: twice as many run side by side as there are cores.
WAITING := $(shell echo $$((2 * $(CORES))))
# A worker has a control plane or two of its own, of one and a half gigabytes each; tests/cluster/workers.py has the
# order. The timeout allows for a busy machine.
CLUSTER := $(BIN)/pytest -q -n $(patsubst auto,4,$(WORKERS)) --dist=loadfile --no-loadscope-reorder --timeout=300 --hypothesis-profile=$(PROPERTIES) --override-ini addopts="--strict-markers --strict-config -ra --import-mode=importlib"

# KUBERNETES=1.33 takes the API server of another version: a folder of tests/controlplane/kubernetes. Left out is what
# compares the cluster in memory and the tables of kinds with the newest one, and what only that can do (also what is
# marked `newest`).
export RULEOP_KUBERNETES := $(KUBERNETES)
NEWEST := clients test_at_rest.py test_local_objects.py test_openapi_document.py test_rules_image.py test_schema_table.py test_tables.py test_typed_shapes.py test_walks.py
OLDER  := tests/cluster $(NEWEST:%=--ignore=tests/cluster/%)
SERVED := $(if $(KUBERNETES),$(OLDER),--contract-server=real tests/cluster tests/contract)

# Prints what a target does, and how long it took. $(1) is the description, $(2) the command.
define step
	@echo "== $(1)"; start=$$(date +%s); { $(2); }; status=$$?; echo "== done in $$(( $$(date +%s) - start )) s (exit $$status)"; exit $$status
endef

.PHONY: help demo test test-all lint test-cluster test-page controlplane programs cluster-up cluster-down image image-tools test-image bench bench-cluster fuzz mutations pictures site coverage lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --no-compile: Python compiles what it imports, a tenth of what pip would.
$(STAMP): requirements/dev.txt pyproject.toml
	@echo "== a virtual environment in $(VENV), from hash-pinned requirements"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ruleop needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r requirements/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)  ## the examples with an API server in memory: created, edited, deleted
	$(call step,the examples with an API server in memory,$(BIN)/python bench/demo.py)

test: $(STAMP)  ## the fast tests, no cluster needed
	$(call step,the fast tests,$(FAST))

test-all: $(STAMP)  ## all tests without a cluster: the slow ones too, and properties on more examples
	$(call step,all tests without a cluster,$(ALL))
	$(call step,the tests of the operator on the server in memory,$(ALL) -n $(patsubst auto,$(WAITING),$(WORKERS)) --override-ini addopts="--strict-markers --strict-config -ra --import-mode=importlib" --cluster-server=memory --dist=loadscope tests/cluster)

coverage: $(STAMP)  ## the fast tests, with branch coverage
	$(call step,the fast tests with branch coverage,$(BIN)/pytest -q -p pytest_cov -m "not slow" --cov --cov-report=term-missing:skip-covered)

lint: $(STAMP)  ## ruff, mypy strict, import-linter
	$(call step,ruff,$(BIN)/ruff check . && $(BIN)/ruff format --check .)
	$(call step,mypy --strict,$(BIN)/mypy)
	$(call step,import-linter,$(BIN)/lint-imports)

controlplane:  ## build the control plane for the tests (about ten minutes the first time)
	$(call step,the control plane,$(PYTHON) tests/controlplane/up.py build)

programs:  ## build Helm and other programs for the tests (a few minutes the first time)
	$(call step,programs for the tests,$(PYTHON) tests/controlplane/up.py build-programs)

test-cluster: $(STAMP) controlplane programs  ## the tests that need a real API server (KUBERNETES= for an older one)
	$(call step,the tests and the contract against a real control plane,$(CLUSTER) $(SERVED))

cluster-up: controlplane  ## start a real control plane on this machine, with a kubeconfig
	@$(PYTHON) tests/controlplane/up.py up

cluster-down:  ## stop that control plane
	@$(PYTHON) tests/controlplane/up.py down

image:  ## build the generic image with buildah, podman or docker (BUILDER=, IMAGE=, BASE=)
	@BUILDER="$(BUILDER)" IMAGE="$(IMAGE)" BASE="$(BASE)" ./image/build.sh

# The tools of the page's tests in a browser; fails early if one is missing.
AXE := tests/page/browser/node_modules/.package-lock.json
$(AXE): tests/page/browser/package-lock.json
	@./tests/page/browser/missing.sh
	@npm ci --prefix tests/page/browser --no-audit --no-fund --silent
	@touch $@

test-page: $(STAMP) $(AXE)  ## the page in a browser (chromium, npm)
	@./tests/page/browser/missing.sh
	$(call step,the page in a browser,$(BIN)/pytest -q -n $(patsubst auto,2,$(WORKERS)) --timeout=300 --override-ini addopts="--strict-markers --strict-config -ra --import-mode=importlib" tests/page/browser)

# Fails early if a tool is missing.
image-tools:
	@BASE="$(BASE)" ./image/missing.sh

test-image: image-tools $(STAMP)  ## build the image and run it as a pod against the control plane (root, buildah, runc, debootstrap; BASE=)
	@$(MAKE) --no-print-directory controlplane
	$(call step,the image as a pod,BASE="$(BASE)" $(BIN)/pytest -q -s --override-ini addopts="--strict-markers --strict-config --import-mode=importlib" tests/cluster/image/as_a_pod.py)

bench: $(STAMP)  ## measure render, plan, merge and load times against their budgets, and what an edit passes
	$(call step,the benchmarks,$(BIN)/python bench/core.py)
	$(call step,the checks of a project,$(BIN)/python bench/checks.py)
	$(call step,the API server in memory,$(BIN)/python bench/localcluster.py)
	$(call step,thousands of custom resources under ruleop dev,$(BIN)/python bench/converge.py)
	$(call step,the page on thousands of custom resources,$(BIN)/python bench/page.py)
	$(call step,the memory of the operator,$(BIN)/python bench/memory.py)
	$(call step,the files and functions that an edit passes,$(BIN)/python bench/edit_trace.py)

bench-cluster: $(STAMP) controlplane  ## measure the operator against a bare client and a Go operator
	$(call step,the operator on a real API server,$(BIN)/python bench/cluster.py)
	$(call step,one and several shards on a real API server,$(BIN)/python bench/shards.py)

# Stopped or finished, it resumes from .fuzz/; FRESH=1 restarts it. WORKERS=auto means two.
MINUTES ?= 5
SEED    ?= 1
FUZZ    := --minutes $(MINUTES) --seed $(SEED) --workers $(patsubst auto,2,$(WORKERS)) $(if $(FRESH),--fresh)
fuzz: $(STAMP)  ## search for the most expensive pass (MINUTES=, SEED=, WORKERS=, FRESH=1), or measure one case (REPLAY=FILE)
	$(call step,the search for the most expensive pass,nice -n 19 $(BIN)/python -m bench.fuzz $(if $(REPLAY),--replay $(REPLAY),$(FUZZ)))

COUNT ?= 200
mutations: $(STAMP)  ## random mutations of the examples' templates: do check and the examples' tests find them? (COUNT=, SEED=)
	$(call step,mutations of the examples' templates,$(BIN)/python -m bench.mutations --count $(COUNT) --seed $(SEED))

pictures: $(STAMP)  ## the pictures of the documentation, from what commands show
	$(call step,the pictures,$(BIN)/python -m bench.pictures)
	$(call step,the pictures of the page,$(BIN)/python bench/page_pictures.py)

$(SPHINX)/.installed: requirements/site.txt
	@$(PYTHON) -m venv $(SPHINX)
	@$(SPHINX)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

site: $(SPHINX)/.installed  ## the documentation as a site with search, in build/site
	$(call step,the site,rm -rf build/site && $(SPHINX)/bin/sphinx-build -q -W --keep-going -d build/doctrees docs build/site)

# Only `ruleop test` needs them, and the image has no tests.
NOT_IN_IMAGE := pytest iniconfig packaging pluggy pygments colorama
lock:  ## regenerate requirements/*.txt from pyproject.toml
	@$(PYTHON) -m venv $(UV) && $(UV)/bin/pip install --quiet uv
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal pyproject.toml --extra certificates -o requirements/run.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal pyproject.toml --extra certificates $(NOT_IN_IMAGE:%=--no-emit-package %) -o requirements/image.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal pyproject.toml --extra certificates --group dev -o requirements/dev.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal --group build -o requirements/build.txt
	@$(UV)/bin/uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --universal --group site -o requirements/site.txt

clean:  ## remove the virtual environment and all caches of the project
	rm -rf $(VENV) build/site build/doctrees .fuzz .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find ruleop tests bench -name __pycache__ -prune -exec rm -rf {} +
