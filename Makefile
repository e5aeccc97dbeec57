# Each target makes what it needs.  `make verify` and then `make test` is all there is to know.

PYTHON ?= python3
# Whoever turned this off would have every process of pytest rewrite all assertions again: 5 of its 7 seconds to start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# With LOCKED=1, for CI, nothing is installed but files whose hashes are known.  A mirror may have files of its own.
CONSTRAINTS := --constraint requirements/constraints.txt
ifdef LOCKED
CONSTRAINTS := --require-hashes --constraint requirements/hashes.txt
endif
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS)
# A pip that takes hashes from a file of constraints; older ones want them beside every name.
locked_pip = [ -z '$(LOCKED)' ] || { sed -n '/^pip==/,/[^\\]$$/p' requirements/hashes.txt > $(1)/pip.txt \
    && $(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(1)/pip.txt; }
# The package itself, when all that it needs is there: what is in this directory has no hash.
EDITABLE := -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .

# What is installed with the package wherever it is tried.
EXTRAS := cli exports opencl proto

# Tests run in as many processes as there are processors.
PARALLEL := -n auto --dist worksteal
# For logs: without the tables of seeded bugs, so that what failed is near the end.
LOGGED := $(PARALLEL) --quiet
# New examples, those that follow from a seed.  Without it the examples are the same every time.
searching = --hypothesis-profile=searching --hypothesis-seed=$(1)
# In the gate what failed runs once more, after the tests that ran before it in its process, in the same order.  What
# passes then is unstable, and the next thing to mend.
GATE ?=
KEPT = $(CURDIR)/build/gate/$@
AGAIN = $(CURDIR)/$(BIN)/python $(CURDIR)/tests/support/order.py $(KEPT)
twice = $(1) $(if $(GATE),-o cache_dir=$(KEPT) --write-order=$(KEPT) --durations=10 || { lists=$$($(AGAIN)) || exit 1; \
    for list in $$lists; do $(1) -n 0 -p no:cacheprovider --follow-order=$$list --maxfail=1 || exit 1; done; })
# The order follows from the seed.
in_random_order = --random-order --random-order-bucket=global --random-order-seed=$(1)

# What is needed beyond Python and make, for `make system-deps`: the one list of it.  Debian packages of libraries; and
# programs with the package that has each, which is installed only where the program is missing: it may come from elsewhere.
SYSTEM_LIBRARIES := libc6-dev libcairo2 libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
SYSTEM_PROGRAMS := gcc:gcc g++:g++ chromium:chromium chromedriver:chromium-driver dot:graphviz node:nodejs npm:npm \
    pdflatex:texlive-latex-base plantuml:plantuml rustc:rustc spin:spin

.DEFAULT_GOAL := help
.PHONY: help environment verify test deep new-seeds shuffled mutation coverage hostcuda hostcuda-quick test-hostcuda \
    gpu test-caffe lint types docs generated kill-table frozen bench wheel test-wheel test-lowest test-other-python system-deps clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# ------------------------------------------------------------------------------------------ environment

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit("syncedmem needs Python 3.11 or newer, this is " + sys.version.split()[0] \
	    + "; say which to use: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@echo 'Making a virtual environment: $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@$(call locked_pip,$(VENV))
	@mkdir -p $(STAMPS) && touch $@

# The package itself, editable.
$(STAMPS)/package: pyproject.toml setup.py src/README.md src/syncedmem/__init__.py requirements/constraints.txt $(STAMPS)/venv
	@echo 'Installing syncedmem and what it needs: $(EXTRAS)'
	@$(BIN)/python requirements/declared.py $(EXTRAS) > $(STAMPS)/declared.txt
	@$(BIN)/python $(PIP_INSTALL) setuptools --requirement $(STAMPS)/declared.txt
	@$(BIN)/python $(EDITABLE)
	@touch $@

# What a job needs: requirements/<job>.txt.
$(STAMPS)/%: requirements/%.txt requirements/constraints.txt $(STAMPS)/package
	@echo 'Installing what $< names'
	@$(BIN)/python $(PIP_INSTALL) --requirement $<
	@touch $@

# All that .venv can hold.
environment: $(STAMPS)/lint $(STAMPS)/types $(STAMPS)/test $(STAMPS)/docs $(STAMPS)/package-tools

# ------------------------------------------------------------------------------------------------- jobs

verify: $(STAMPS)/package  ## check the model, then every device of this machine, against the spec
	$(BIN)/syncedmem verify $(SEED:%=--seed %)

# pytest and coverage are run as scripts: `python -m` would put this directory on sys.path, and with it
# packages called model, runtime and spec.
test: $(STAMPS)/test  ## run the quick tests, with the same examples every time
	$(BIN)/pytest $(PARALLEL) -m 'not deep' tests README.md

# Its parts and their files: tests/support/deep.py.
deep: $(STAMPS)/test  ## run what takes longer, in parts, and print a line for each; PART=races runs one
	@$(BIN)/python tests/support/deep.py $(PART)

new-seeds: TRIED := $(or $(SEED),$(shell shuf --input-range 0-4294967295 --head-count 1))
new-seeds: $(STAMPS)/test  ## run the generated tests and the kits with a seed that nobody has tried, or with SEED
	$(BIN)/syncedmem verify --seed $(TRIED) --device cpu --device simulated --device simulated-seeded
	$(BIN)/pytest $(PARALLEL) --quiet -m hypothesis $(call searching,$(TRIED)) tests

shuffled: TRIED := $(or $(SEED),$(shell shuf --input-range 0-4294967295 --head-count 1))
shuffled: $(STAMPS)/test  ## run the quick tests in a random order, in one process and in two; SEED repeats one
	$(BIN)/pytest -n 2 --dist worksteal --quiet -m 'not deep' $(call in_random_order,$(TRIED)) tests README.md
	$(BIN)/pytest -n 0 --quiet -m 'not deep' $(call in_random_order,$(TRIED)) tests README.md

# Environments that only one job needs, and that are not locked, because no gate runs them.
$(VENV)-mutation/ready $(VENV)-mfem/ready: $(VENV)-%/ready: requirements/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# FILE is changed in place, and is as it was at the end.  Fewer TESTS are quicker: each mutant runs them until one fails.
MUTATION := build/mutation
MUTATION_BIN := $(VENV)-mutation/bin
mutation: TESTS = tests/$(firstword $(subst /, ,$(FILE)))
mutation: $(STAMPS)/test $(VENV)-mutation/ready  ## show the small changes of FILE that no test of TESTS notices
	rm -rf $(MUTATION) && mkdir -p $(MUTATION)
	sed 's|FILE|$(FILE)|; s|TESTS|$(TESTS)|' tests/cosmic-ray.toml > $(MUTATION)/config.toml
	$(MUTATION_BIN)/cosmic-ray init $(MUTATION)/config.toml $(MUTATION)/session.sqlite
	$(MUTATION_BIN)/cr-filter-operators $(MUTATION)/session.sqlite $(MUTATION)/config.toml
	PATH=$(CURDIR)/$(BIN):$$PATH $(MUTATION_BIN)/cosmic-ray exec $(MUTATION)/config.toml $(MUTATION)/session.sqlite
	$(MUTATION_BIN)/cr-report --surviving-only --show-diff $(MUTATION)/session.sqlite

# All tests of the two rooms, the quick tests of the others, and what needs CUDA, over hostcuda and without a lag, which
# takes no other lines.
COVERAGE := build/coverage
TRACED := --cov --cov-report= --cov-append
COVERED := tests/model tests/runtime
coverage: export COVERAGE_FILE := $(COVERAGE)/coverage
coverage: hostcuda  ## report which lines and branches of the model and the runtime the tests take
	rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	$(BIN)/pytest $(LOGGED) $(TRACED) $(COVERED)
	$(BIN)/pytest $(LOGGED) $(TRACED) -m 'not deep' tests/cli tests/docs tests/project tests/spec
	PYTHONPATH=$(CURDIR)/$(HOSTCUDA) $(BIN)/pytest $(LOGGED) $(TRACED) -k cuda $(COVERED)
	$(BIN)/coverage report

# ------------------------------------------------------------------------------------- CUDA on the host

HOSTCUDA := build/hostcuda
HOSTCUDA_BIN := $(VENV)-hostcuda/bin
# The version of the installed wheel: the binding replaces its own.
CUPY := $(shell sed -n 's/^cupy-cuda12x==//p' requirements/constraints.txt)

$(VENV)-hostcuda/ready: requirements/hostcuda.txt requirements/constraints.txt
	$(PYTHON) -m venv $(VENV)-hostcuda
	@$(call locked_pip,$(VENV)-hostcuda)
	$(HOSTCUDA_BIN)/python $(PIP_INSTALL) --requirement $<
	@touch $@

# With what runs over it: pytest and CuPy in .venv.
hostcuda: $(STAMPS)/test $(VENV)-hostcuda/ready  ## build the stand-in for CUDA, which runs on any machine and is not a GPU
	@for tool in gcc g++; do command -v $$tool >/dev/null || { \
	    echo "hostcuda needs $$tool, which is not installed: make system-deps" >&2; exit 1; }; done
	@$(MAKE) --no-print-directory -C tests/hostcuda \
	    OUT=$(CURDIR)/$(HOSTCUDA) PYTHON=$(CURDIR)/$(HOSTCUDA_BIN)/python CUPY=$(CUPY) \
	    CONSTRAINTS='$(CONSTRAINTS:requirements/%=$(CURDIR)/requirements/%)'

# So many microseconds pass before each operation that is queued on a stream, so that what forgets to wait is seen.
over_hostcuda = PYTHONPATH=$(CURDIR)/$(HOSTCUDA) HOSTCUDA_LAG=$(1)
verify_cuda = $(call over_hostcuda,$(1)) $(BIN)/syncedmem verify --device cuda --out $(HOSTCUDA)/verify-$(1)
# Tests of the rooms that are left out name CUDA only in texts.
test_cuda = $(call over_hostcuda,$(1)) $(BIN)/pytest $(LOGGED) $(NO_CUDA:%=--ignore=tests/%) -k cuda
NO_CUDA := cli model project

# While operations lag the processors are idle, so there are more processes.
test-hostcuda: hostcuda  ## run everything that needs CUDA over the stand-in, with delayed operations
	$(call verify_cuda,2000)
	$(call test_cuda,2000) -n 4 -m 'not no_lag'
	$(call test_cuda,0) -m no_lag
	$(call over_hostcuda,0) $(BIN)/python benchmarks/gpu.py --quick

gpu: $(STAMPS)/test  ## on a machine with an NVIDIA GPU: tests, kit, port and benchmark there, a line for each
	$(BIN)/python tests/support/on_gpu.py

hostcuda-quick: hostcuda  ## run the kit and the quick tests that need CUDA over the stand-in, without delays
	$(call verify_cuda,0)
	@$(call twice,$(call test_cuda,0) -m 'not deep')

# ----------------------------------------------------------------------------------------- Caffe itself

# Its files are compiled as they are, behind a shim; nothing of them is in the repository.  A download is kept.
CAFFE := build/caffe
BROCOLLI := $(shell sed -n 's/^brocolli-caffe==//p' requirements/constraints.txt)

CHOSEN := -m 'not deep'
test-caffe: $(STAMPS)/test  ## compile Caffe's own SyncedMemory, and test it as a port
	@command -v g++ >/dev/null || { echo 'test-caffe needs g++, which is not installed: make system-deps' >&2; exit 1; }
	@$(MAKE) --no-print-directory -C tests/caffe OUT=$(CURDIR)/$(CAFFE) PYTHON=$(CURDIR)/$(BIN)/python \
	    VERSION=$(BROCOLLI) CONSTRAINTS='$(CONSTRAINTS:requirements/%=$(CURDIR)/requirements/%)'
	$(call twice,CAFFE=$(CURDIR)/$(CAFFE) $(BIN)/pytest -n 0 --quiet $(CHOSEN) tests/caffe)

lint: $(STAMPS)/lint  ## ruff, spelling, and who may import what
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo

types: $(STAMPS)/types $(STAMPS)/test $(STAMPS)/docs  ## mypy and pyright, both strict; all that is public has a type; README.md too
	$(BIN)/mypy
	$(BIN)/pyright
	PATH=$(CURDIR)/$(BIN):$$PATH pyright --verifytypes syncedmem --ignoreexternal
	@mkdir -p build
	sed -n '/^```python$$/,/^```$$/{//!p}' README.md src/README.md > build/readme.py
	$(BIN)/mypy build/readme.py

# A warning is an error.  Sphinx and MyST warn of a name, a link or a picture that leads nowhere, and docs/extension of a
# public name that the reference leaves out.
docs: $(STAMPS)/test $(STAMPS)/docs  ## build the site, and run the code blocks of README.md and docs/
	rm -rf build/site
	$(BIN)/python -m sphinx --builder html --fail-on-warning --quiet --fresh-env --doctree-dir build/doctrees docs build/site
	@echo 'The site: build/site/index.html'
	$(BIN)/pytest README.md src/README.md docs tests/docs/test_pages.py

# Vectors that are kept for reading.
COMMITTED := caffe/modes caffe/aliases cpu_only/tour

ROUND_TRIP := mutable_cpu_data gpu_data mutable_gpu_data cpu_data

generated: $(STAMPS)/test  ## write the committed files that are made; with CHECK=--check, fail if one is not up to date
	$(BIN)/syncedmem diagram --format svg -o docs/machine.svg $(CHECK)
	$(BIN)/syncedmem diagram --format json -o docs/machine.json $(CHECK)
	$(BIN)/syncedmem diagram --format svg --trace '$(ROUND_TRIP)' --size 4096 -o docs/pictures/round-trip.svg $(CHECK)
	$(BIN)/syncedmem diagram --format port-header -o examples/ports/syncedmem_port.h $(CHECK)
	$(BIN)/syncedmem diagram --format port-header -o spec/ports/harness/syncedmem_port.h $(CHECK)
	$(BIN)/syncedmem vectors --out vectors $(COMMITTED:%=--suite %) $(CHECK)
	$(BIN)/python docs/generated_pages.py $(CHECK)
	$(BIN)/python tests/support/public_names.py $(CHECK)
	$(BIN)/python tests/support/compiled_proto.py $(CHECK)

kill-table: $(STAMPS)/test  ## write down which suites of the kit catch each seeded bug, or BUG alone; for all it takes minutes
	$(BIN)/pytest $(LOGGED) --every-suite --write-kills tests/mutants/kills.json -k 'the_kit_catches$(BUG:%= and %)' \
	    tests/spec/test_seeded_bugs.py

# Of memories and blobs, of allocators, of ports.
FROZEN := tests/spec/test_seeded_bugs.py tests/runtime/allocators/test_contract.py \
    tests/spec/fuzz/test_fuzz_seeded_bugs.py tests/spec/ports/test_example_ports.py tests/spec/ports/test_wrong_ports.py
FREEZE := compare
frozen: $(STAMPS)/test  ## compare the requirement that refuses each seeded bug with what it was; FROZEN=FILE for one file
	$(BIN)/pytest $(LOGGED) --frozen=$(FREEZE) -m 'deep or not deep' $(FROZEN) \
	    -k 'the_kit_catches or a_seeded_bug or every_seeded_bug or the_fuzzer_catches or a_bug_is_found'

bench: $(STAMPS)/test  ## measure every speed that is promised
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit; done

wheel: $(STAMPS)/package-tools $(STAMPS)/test  ## build the sdist, from it the wheel and its SBOM, and check both
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python requirements/sbom.py dist/*.whl

# The wheel over the environment of the checkout: what PYTHONPATH names comes before the editable package.  The tests run
# from an empty directory, so that nothing of the checkout can be imported.
WHEEL := build/wheel/site-packages
test-wheel: wheel $(STAMPS)/test  ## run the quick tests against the wheel
	rm -rf $(WHEEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(WHEEL) dist/*.whl
	@set -eu; root=$$PWD; empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; cd "$$empty"; \
	export PYTHONPATH="$$root/$(WHEEL)"; \
	"$$root/$(BIN)/python" -c 'import importlib.util as u, syncedmem.model as m; print(m.__file__); \
	    assert m.__file__.startswith("$(CURDIR)/$(WHEEL)"); assert not any(map(u.find_spec, ("model", "runtime", "spec", "src")))'; \
	$(call twice,"$$root/$(BIN)/pytest" -c "$$root/pyproject.toml" --rootdir "$$root" $(LOGGED) \
	    -m 'not deep' "$$root/tests" "$$root/README.md")

# Modules that use each library and all of the command line, and take less than a minute.
QUICK := $(foreach name,arithmetic array_files blob blob_adoption blob_attributes blob_messages \
    buffer caffemodel dispatch exports help host machine memory mode opencl proofs public, \
    $(wildcard tests/*/test_$(name).py tests/*/*/test_$(name).py)) tests/runtime/interop -m 'not deep'

# Old releases of libraries use what their own dependencies have deprecated since.
LOWEST := $(VENV)-lowest
test-lowest:  ## quick tests with the lower bound of every dependency, in an environment of its own
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python requirements/declared.py --lowest > $(LOWEST)/declared.txt
	$(LOWEST)/bin/python requirements/declared.py --rest > $(LOWEST)/rest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/rest.txt \
	    --requirement $(LOWEST)/declared.txt --requirement requirements/lowest.txt
	$(LOWEST)/bin/python $(EDITABLE)
	$(LOWEST)/bin/python -m pip check
	$(LOWEST)/bin/pytest $(LOGGED) -p no:cacheprovider -W ignore::DeprecationWarning $(QUICK)

OTHER ?= python3.13
OTHER_VENV := $(VENV)-other
test-other-python:  ## quick tests with another Python, OTHER=python3.12
	rm -rf $(OTHER_VENV)
	$(OTHER) -m venv $(OTHER_VENV)
	@$(call locked_pip,$(OTHER_VENV))
	$(OTHER_VENV)/bin/python requirements/declared.py $(EXTRAS) > $(OTHER_VENV)/declared.txt
	$(OTHER_VENV)/bin/python $(PIP_INSTALL) --requirement $(OTHER_VENV)/declared.txt --requirement requirements/test.txt
	$(OTHER_VENV)/bin/python $(EDITABLE)
	$(OTHER_VENV)/bin/pytest $(LOGGED) -p no:cacheprovider $(QUICK)

# The hashes of all files of each version: after a change of constraints.txt.
requirements/hashes.txt: requirements/constraints.txt $(STAMPS)/lock
	$(BIN)/uv pip compile --quiet --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links $< --output-file $@

system-deps:  ## install the Debian packages (as root); without one, tests that need it are skipped by name
	@missing=$$( \
	    for name in $(SYSTEM_LIBRARIES); do dpkg --status $$name >/dev/null 2>&1 || echo $$name; done; \
	    for pair in $(SYSTEM_PROGRAMS); do command -v $${pair%:*} >/dev/null || echo $${pair#*:}; done); \
	if [ -n "$$missing" ]; then apt-get update && \
	    for name in $$missing; do apt-cache show $$name >/dev/null 2>&1 && echo $$name || \
	        echo "there is no package $$name here" >&2; done | xargs apt-get install --yes --no-install-recommends; fi

clean:  ## remove everything that was made here
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-other $(VENV)-hostcuda $(VENV)-mutation $(VENV)-mfem
	rm -rf build dist src/*.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find model runtime spec src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
