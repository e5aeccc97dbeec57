# Each target makes what it needs.  `make verify` and then `make test` is all there is to know.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt

# Tests run in as many processes as there are processors.
PARALLEL := -n auto
# For logs: without the tables of planted faults, which `make test` prints, so that what failed is near the end; and
# with the same examples every time, where `make test` looks for new ones.
LOGGED := $(PARALLEL) --quiet --hypothesis-profile=repeatable

# What is needed beyond Python and make, for `make system-deps`: the one list of it.  Debian packages of libraries; and
# programs with the package that has each, which is installed only where the program is missing: it may come from elsewhere.
SYSTEM_LIBRARIES := libc6-dev libcairo2 libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
SYSTEM_PROGRAMS := gcc:gcc g++:g++ chromium:chromium chromedriver:chromium-driver dot:graphviz node:nodejs npm:npm \
    rustc:rustc spin:spin

.DEFAULT_GOAL := help
.PHONY: help verify test faults proof coverage lint types docs generated check-generated kills bench wheel test-wheel system-deps clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# ------------------------------------------------------------------------------------------ environment

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit("syncedmem needs Python 3.11 or newer, this is " + sys.version.split()[0] \
	    + "; say which to use: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# The package itself, editable, with a device that every machine has.
$(STAMPS)/package: pyproject.toml setup.py src/syncedmem/__init__.py requirements/constraints.txt $(STAMPS)/venv
	$(BIN)/python $(PIP_INSTALL) --editable '.[opencl]'
	@touch $@

# What a job needs: requirements/<job>.txt.
$(STAMPS)/%: requirements/%.txt requirements/constraints.txt $(STAMPS)/package
	$(BIN)/python $(PIP_INSTALL) --requirement $<
	@touch $@

# ------------------------------------------------------------------------------------------------- jobs

verify: $(STAMPS)/package  ## check the model, then every device of this machine, against the spec
	$(BIN)/syncedmem verify

# pytest and coverage are run as scripts: `python -m` would put this directory on sys.path, and with it
# packages called model, runtime and spec.
test: $(STAMPS)/test  ## run the tests
	$(BIN)/pytest $(PARALLEL)

faults: $(STAMPS)/test  ## put every planted fault to every suite, and print the table
	$(BIN)/pytest $(PARALLEL) --every-suite tests/test_faults.py

# tests/uncounted.py alone decides which modules cannot run on this machine.
coverage: $(STAMPS)/test  ## run the tests; every line and branch has to be taken
	$(BIN)/coverage erase
	$(BIN)/pytest $(LOGGED) --cov --cov-report= --cov-fail-under=0
	$(BIN)/coverage report --omit="$$($(BIN)/python tests/uncounted.py)"

proof: $(STAMPS)/test  ## put the fuzzer to real allocators and to planted faults, and write docs/fuzzing-proof.md
	$(BIN)/pytest -n 0 --write-proof tests/test_fuzz_backends.py tests/test_fuzz_faults.py

lint: $(STAMPS)/lint  ## ruff, spelling, and who may import what
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo

types: $(STAMPS)/types $(STAMPS)/test $(STAMPS)/docs  ## mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/pyright

# A warning is an error, and so is a name, a link or a picture that leads nowhere: docs/extension looks for those.
docs: $(STAMPS)/test $(STAMPS)/docs  ## build the site, and run the code blocks of README.md and docs/
	rm -rf build/site
	$(BIN)/python -m sphinx --builder html --fail-on-warning --quiet --fresh-env --doctree-dir build/doctrees docs build/site
	@echo 'The site: build/site/index.html'
	$(BIN)/pytest README.md docs tests/test_pages.py tests/test_site.py

# Vectors that are kept for reading; the manifest has the digests of all others.
COMMITTED := caffe/modes caffe/aliases cpu_only/tour

ROUND_TRIP := mutable_cpu_data gpu_data mutable_gpu_data cpu_data

generated: $(STAMPS)/package  ## write the committed files that are made from the model
	$(BIN)/syncedmem diagram --format svg -o docs/machine.svg $(CHECK)
	$(BIN)/syncedmem diagram --format page -o docs/machine.md $(CHECK)
	$(BIN)/syncedmem diagram --format json -o docs/machine.json $(CHECK)
	$(BIN)/syncedmem diagram --format schema -o docs/machine.schema.json $(CHECK)
	$(BIN)/syncedmem diagram --format svg --trace '$(ROUND_TRIP)' --size 4096 -o docs/pictures/round-trip.svg $(CHECK)
	$(BIN)/syncedmem diagram --format svg --detail configurations -o docs/pictures/configurations.svg $(CHECK)
	$(BIN)/syncedmem vectors --out vectors $(COMMITTED:%=--suite %) $(CHECK)
	$(BIN)/python docs/generated_pages.py $(CHECK)

kills: $(STAMPS)/package  ## put every planted fault to every test vector, which takes half an hour, and keep the result
	$(BIN)/syncedmem vectors --out spec/vectors --measure
	$(MAKE) generated

check-generated:  ## fail if one of them is not up to date
	@$(MAKE) --no-print-directory generated CHECK=--check

bench: $(STAMPS)/test  ## measure every speed that is promised
	$(BIN)/python benchmarks/hot_path.py
	$(BIN)/python benchmarks/allocators.py
	$(BIN)/python benchmarks/fuzzing.py
	$(BIN)/python benchmarks/arithmetic.py
	$(BIN)/python benchmarks/blobs.py
	$(BIN)/python benchmarks/serialisation.py
	$(BIN)/python benchmarks/exports.py
	$(BIN)/python benchmarks/explorer.py
	$(BIN)/python benchmarks/port_vectors.py

wheel: $(STAMPS)/package-tools  ## build the sdist, from it the wheel, and check what is in it
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/check-wheel-contents dist/*.whl

# From an empty directory, in an environment of its own, so that nothing of the checkout can be imported.
test-wheel: wheel  ## install the wheel elsewhere and run the tests against it
	rm -rf $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python $(PIP_INSTALL) --requirement requirements/test.txt "$$(echo dist/*.whl)[opencl]"
	@set -eu; root=$$PWD; empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; cd "$$empty"; \
	"$$root/$(VENV)-wheel/bin/python" -c 'import importlib.util as u, syncedmem.model as m; print(m.__file__); \
	    assert "site-packages" in m.__file__; assert not any(map(u.find_spec, ("model", "runtime", "spec", "src")))'; \
	"$$root/$(VENV)-wheel/bin/pytest" -p no:cacheprovider -c "$$root/pyproject.toml" --rootdir "$$root" $(LOGGED) "$$root/tests"

system-deps:  ## install the Debian packages (as root)
	@missing=$$( \
	    for name in $(SYSTEM_LIBRARIES); do dpkg --status $$name >/dev/null 2>&1 || echo $$name; done; \
	    for pair in $(SYSTEM_PROGRAMS); do command -v $${pair%:*} >/dev/null || echo $${pair#*:}; done); \
	if [ -n "$$missing" ]; then apt-get update && apt-get install --yes --no-install-recommends $$missing; fi

clean:  ## remove everything that was made here
	rm -rf $(VENV) $(VENV)-wheel build dist src/*.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find model runtime spec src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
