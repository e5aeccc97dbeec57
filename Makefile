# Each target makes what it needs.  `make verify` and then `make test` is all there is to know.

PYTHON ?= python3
# Whoever turned this off would have every process of pytest rewrite all assertions again: 5 of its 7 seconds to start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# With LOCKED=1 nothing is installed but files whose hashes are in requirements/hashes.txt.  That is for CI: a mirror may
# have files of its own, which are no worse.
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

# What is installed with the package wherever it is tried: the command line with the kit, a device that every machine has,
# every format, and what messages of blobs need.
EXTRAS := cli exports opencl proto

# Tests run in as many processes as there are processors; who has none left takes some of another.
PARALLEL := -n auto --dist worksteal
# For logs: without the tables of seeded bugs, which `make test` prints, so that what failed is near the end; and
# with the same examples every time, where `make test` looks for new ones.
LOGGED := $(PARALLEL) --quiet --hypothesis-profile=repeatable

# What is needed beyond Python and make, for `make system-deps`: the one list of it.  Debian packages of libraries; and
# programs with the package that has each, which is installed only where the program is missing: it may come from elsewhere.
SYSTEM_LIBRARIES := libc6-dev libcairo2 libclang-rt-14-dev libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
SYSTEM_PROGRAMS := gcc:gcc g++:g++ clang:clang chromium:chromium chromedriver:chromium-driver dot:graphviz node:nodejs npm:npm \
    plantuml:plantuml rustc:rustc spin:spin

.DEFAULT_GOAL := help
.PHONY: help environment verify test long new-seeds bugs port-bugs mutation proof coverage counted untraced hostcuda test-hostcuda hostcuda-verify hostcuda-tests test-caffe test-mfem lint types docs screenshots generated check-generated kills \
    bench wheel installed-wheel test-wheel test-lowest test-newest-python newest lock system-deps clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# ------------------------------------------------------------------------------------------ environment

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit("syncedmem needs Python 3.11 or newer, this is " + sys.version.split()[0] \
	    + "; say which to use: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@$(call locked_pip,$(VENV))
	@mkdir -p $(STAMPS) && touch $@

# The package itself, editable.
$(STAMPS)/package: pyproject.toml setup.py src/README.md src/syncedmem/__init__.py requirements/constraints.txt $(STAMPS)/venv
	$(BIN)/python requirements/declared.py $(EXTRAS) > $(STAMPS)/declared.txt
	$(BIN)/python $(PIP_INSTALL) setuptools --requirement $(STAMPS)/declared.txt
	$(BIN)/python $(EDITABLE)
	@touch $@

# What a job needs: requirements/<job>.txt.
$(STAMPS)/%: requirements/%.txt requirements/constraints.txt $(STAMPS)/package
	$(BIN)/python $(PIP_INSTALL) --requirement $<
	@touch $@

# All that .venv can hold.
environment: $(STAMPS)/lint $(STAMPS)/types $(STAMPS)/test $(STAMPS)/docs $(STAMPS)/package-tools

# ------------------------------------------------------------------------------------------------- jobs

verify: $(STAMPS)/package  ## check the model, then every device of this machine, against the spec
	$(BIN)/syncedmem verify $(SEED:%=--seed %)

# pytest and coverage are run as scripts: `python -m` would put this directory on sys.path, and with it
# packages called model, runtime and spec.
test: $(STAMPS)/test  ## run the tests but the long ones; SEED=n runs all, with the examples that follow from n
	$(BIN)/pytest $(PARALLEL) $(if $(SEED),--hypothesis-seed=$(SEED),-m 'not long')

# By the time that each takes.
long: $(STAMPS)/test  ## run all tests, which takes half an hour, and list those that make test leaves out
	$(BIN)/pytest $(PARALLEL) --quiet --junitxml=build/times.xml
	$(BIN)/python tests/support/find_long.py build/times.xml

new-seeds: $(STAMPS)/test  ## two more minutes of generated tests and kits, with seeds that nobody has tried
	$(BIN)/python tests/support/new_seeds.py $(SEED:%=--seed %)

# It goes on where it was ended, and writes docs/mutation.md.
mutation: $(STAMPS)/test  ## say how many mutants of FILE the tests kill; without FILE of all files, which takes hours
	$(BIN)/python tests/support/mutation.py $(FILE); found=$$?; $(BIN)/python docs/generated_pages.py; exit $$found

bugs: $(STAMPS)/test  ## run every suite against every seeded bug, of ports too, and the fuzzer against every pair
	$(BIN)/pytest $(PARALLEL) --every-suite tests/spec/test_seeded_bugs.py tests/spec/ports/test_example_ports.py \
	    tests/spec/fuzz/test_fuzz_masks.py tests/spec/fuzz/test_fuzz_seeded_bugs.py tests/spec/fuzz/test_fuzz_backends.py

# Every test runs once, against the wheel, and coverage is mapped back to the rooms.  The modules for CUDA count too: the
# tests of them run over hostcuda.  tests/support/uncounted.py alone decides which modules cannot run on this machine.
COVERAGE := build/coverage
coverage: test-hostcuda counted  ## run all tests against the wheel; every line and branch has to be taken
	$(BIN)/coverage combine --quiet --keep $(COVERAGE) $(HOSTCUDA)/coverage
	$(BIN)/coverage report --omit="$$($(BIN)/python tests/support/uncounted.py)"

# Traced tests run by themselves, so that whatever is made only once in a process is made by one of them.
counted: installed-wheel
	rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	$(call from_nowhere,COVERAGE_FILE="$$root/$(COVERAGE)/.coverage.wheel") $(TRACED) -m 'not no_cover' "$$root/tests"
	$(call from_nowhere) -m no_cover "$$root/tests"

TRACED := --cov --cov-config "$$root/pyproject.toml" --cov-report= --cov-fail-under=0
EACH := build/each-test
untraced: installed-wheel  ## find the tests that need not be traced, which takes most of an hour
	rm -rf $(EACH) && mkdir -p $(EACH)
	$(call from_nowhere,COVERAGE_FILE="$$root/$(EACH)/coverage") $(TRACED) -m 'not no_cover' --trace-all \
	    --cov-context=test --junitxml="$$root/$(EACH)/times.xml" "$$root/tests"
	$(BIN)/python tests/support/find_untraced.py $(EACH)/coverage $(EACH)/times.xml

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

# With a lag of so many microseconds before each operation that is queued on a stream, so that what forgets to wait is seen.
# Tests that are marked with no_lag run without one.
LAG := 2000
test-hostcuda: hostcuda  ## run everything that needs CUDA over the stand-in
	@$(MAKE) --no-print-directory --jobs --output-sync=target hostcuda-verify hostcuda-tests

OVER_HOSTCUDA = PYTHONPATH=$(CURDIR)/$(HOSTCUDA) COVERAGE_FILE=$(CURDIR)/$(HOSTCUDA)/coverage
hostcuda-verify:
	@echo; echo 'syncedmem verify over hostcuda, not a GPU; $(LAG) microseconds before each queued operation:'
	@$(OVER_HOSTCUDA) HOSTCUDA_LAG=$(LAG) $(BIN)/syncedmem verify --device cuda --out $(HOSTCUDA)/verify

# Tests of the rooms that are left out name CUDA only in texts.  While operations lag the processors are idle, so there are
# more processes.
NO_CUDA := cli model project
HOSTCUDA_TESTS = $(BIN)/pytest --quiet --hypothesis-profile=repeatable $(NO_CUDA:%=--ignore=tests/%) -k cuda \
    --cov --cov-report= --cov-fail-under=0
hostcuda-tests:
	@rm -f $(HOSTCUDA)/coverage
	@echo; echo 'Tests over hostcuda, not a GPU; $(LAG) microseconds before each queued operation:'
	@$(OVER_HOSTCUDA) HOSTCUDA_LAG=$(LAG) $(HOSTCUDA_TESTS) -n 4 -m 'not no_lag'
	@$(OVER_HOSTCUDA) $(HOSTCUDA_TESTS) -n 2 -m no_lag --cov-append

# ----------------------------------------------------------------------------------------- Caffe itself

# Its files are compiled as they are, behind a shim; nothing of them is in the repository.  A download is kept.
CAFFE := build/caffe
BROCOLLI := $(shell sed -n 's/^brocolli-caffe==//p' requirements/constraints.txt)

test-caffe: $(STAMPS)/test  ## compile Caffe's own SyncedMemory, and test it as a port
	@command -v g++ >/dev/null || { echo 'test-caffe needs g++, which is not installed: make system-deps' >&2; exit 1; }
	@$(MAKE) --no-print-directory -C tests/caffe OUT=$(CURDIR)/$(CAFFE) PYTHON=$(CURDIR)/$(BIN)/python \
	    VERSION=$(BROCOLLI) CONSTRAINTS='$(CONSTRAINTS:requirements/%=$(CURDIR)/requirements/%)'
	CAFFE=$(CURDIR)/$(CAFFE) $(BIN)/pytest -n 0 --quiet tests/caffe

# MFEM alone: numba, which its package would install too, is needed only for functions of users.
MFEM := build/mfem
MFEM_VERSION := $(shell sed -n 's/^mfem==//p' requirements/constraints.txt)
$(MFEM)/$(MFEM_VERSION): requirements/mfem.txt $(STAMPS)/test
	rm -rf $(MFEM)
	$(BIN)/python $(PIP_INSTALL) --no-deps --only-binary mfem --target $(MFEM) --requirement $<
	@touch $@

test-mfem: $(MFEM)/$(MFEM_VERSION)  ## compare a machine of examples/machines with MFEM itself, call by call
	MFEM=$(CURDIR)/$(MFEM) $(BIN)/pytest -n 0 --quiet tests/mfem

port-bugs: $(STAMPS)/test  ## write again what is said of the bugs in the C++ port; then `make generated`
	PORT_BUGS=write $(BIN)/pytest -n 0 --every-suite -k 'a_bug' tests/spec/ports/test_example_ports.py

proof: $(STAMPS)/test  ## fuzz real allocators, and every seeded bug with 20 seeds, and write docs/fuzzing-proof.md
	$(BIN)/python tests/support/fuzz_proof.py; found=$$?; $(BIN)/python docs/generated_pages.py; exit $$found

lint: $(STAMPS)/lint  ## ruff, spelling, and who may import what
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo

types: $(STAMPS)/types $(STAMPS)/test $(STAMPS)/docs  ## mypy and pyright, both strict, on the blocks of README.md too
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python tests/support/complete_types.py
	$(BIN)/python tests/support/typed_blocks.py README.md src/README.md

# A warning is an error.  Sphinx and MyST warn of a name, a link or a picture that leads nowhere, and docs/extension of a
# public name that the reference leaves out.
docs: $(STAMPS)/test $(STAMPS)/docs  ## build the site, and run the code blocks of README.md and docs/
	rm -rf build/site
	$(BIN)/python -m sphinx --builder html --fail-on-warning --quiet --fresh-env --doctree-dir build/doctrees docs build/site
	@echo 'The site: build/site/index.html'
	$(BIN)/pytest README.md src/README.md docs tests/docs/test_site.py tests/docs/site_in_browser.py

screenshots: docs  ## take pictures of the main pages of the site, on a phone and a screen, light and dark
	$(BIN)/python tests/docs/site_in_browser.py build/screenshots

# Vectors that are kept for reading; the manifest has the digests of all others.
COMMITTED := caffe/modes caffe/aliases cpu_only/tour

ROUND_TRIP := mutable_cpu_data gpu_data mutable_gpu_data cpu_data

generated: $(STAMPS)/package  ## write the committed files that are made from the model
	$(BIN)/syncedmem diagram --format svg -o docs/machine.svg $(CHECK)
	$(BIN)/syncedmem diagram --format page -o docs/machine.md $(CHECK)
	$(BIN)/syncedmem diagram --format json -o docs/machine.json $(CHECK)
	$(BIN)/syncedmem diagram --format schema -o docs/machine.schema.json $(CHECK)
	$(BIN)/syncedmem diagram --format schema --edition examples/machines/msi.py:LINE -o docs/declared.schema.json $(CHECK)
	$(BIN)/syncedmem diagram --format svg --trace '$(ROUND_TRIP)' --size 4096 -o docs/pictures/round-trip.svg $(CHECK)
	$(BIN)/syncedmem diagram --format svg --detail configurations -o docs/pictures/configurations.svg $(CHECK)
	$(BIN)/syncedmem diagram --edition examples/machines/petsc.py:OFFLOAD_MASK -o docs/pictures/petsc.svg $(CHECK)
	$(BIN)/syncedmem diagram --edition examples/machines/mfem.py:FLAGS -o docs/pictures/mfem.svg $(CHECK)
	$(BIN)/syncedmem diagram --edition examples/machines/dualview.py:COUNTERS -o docs/pictures/dualview.svg $(CHECK)
	$(BIN)/syncedmem diagram --edition examples/machines/msi.py:LINE -o docs/pictures/msi.svg $(CHECK)
	$(BIN)/syncedmem diagram --format port-header -o examples/ports/syncedmem_port.h $(CHECK)
	$(BIN)/syncedmem vectors --out vectors $(COMMITTED:%=--suite %) $(CHECK)
	$(BIN)/python docs/generated_pages.py $(CHECK)
	$(BIN)/python tests/support/public_names.py $(CHECK)

kills: $(STAMPS)/package  ## measure which seeded bugs each test vector refuses; what has not changed is not measured again
	$(BIN)/syncedmem vectors --out spec/vectors --measure --kept build/kills
	$(MAKE) generated

check-generated: $(STAMPS)/package  ## fail if one of them is not up to date
	@$(MAKE) --no-print-directory generated CHECK=--check

bench: $(STAMPS)/test  ## measure every speed that is promised
	$(BIN)/python benchmarks/hot_path.py
	$(BIN)/python benchmarks/frames.py
	$(BIN)/python benchmarks/allocators.py
	$(BIN)/python benchmarks/fuzzing.py
	$(BIN)/python benchmarks/arithmetic.py
	$(BIN)/python benchmarks/cuda.py
	$(BIN)/python benchmarks/blobs.py
	$(BIN)/python benchmarks/serialisation.py
	$(BIN)/python benchmarks/exports.py
	$(BIN)/python benchmarks/explorer.py
	$(BIN)/python benchmarks/port_vectors.py
	$(BIN)/python benchmarks/cluster.py

# The second time from the sdist, now, and with files that only their owner may read: the bytes have to be the same.
AGAIN := build/again
wheel: $(STAMPS)/package-tools  ## build the sdist, from it the wheel, and check both; twice, for the same bytes
	rm -rf dist $(AGAIN)
	$(BIN)/python -m build --no-isolation
	$(BIN)/check-wheel-contents dist/*.whl
	mkdir -p $(AGAIN)
	umask 077; tar --extract --gzip --file dist/*.tar.gz --directory $(AGAIN) --strip-components 1 --touch --no-same-permissions
	umask 077; $(BIN)/python -m build --no-isolation --sdist --wheel $(AGAIN)
	@for file in dist/*; do cmp $$file $(AGAIN)/$$file; done && echo 'The same bytes twice.'

WHEEL := $(VENV)-wheel
installed-wheel: wheel
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	@$(call locked_pip,$(WHEEL))
	$(WHEEL)/bin/python requirements/declared.py $(EXTRAS) > $(WHEEL)/declared.txt
	$(WHEEL)/bin/python $(PIP_INSTALL) --requirement $(WHEEL)/declared.txt --requirement requirements/test.txt
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	$(WHEEL)/bin/python -m pip check

# pytest of the wheel's environment, from an empty directory, so that nothing of the checkout can be imported.
define from_nowhere
@set -eu; root=$$PWD; empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; cd "$$empty"; \
"$$root/$(WHEEL)/bin/python" -c 'import importlib.util as u, syncedmem.model as m; print(m.__file__); \
    assert "site-packages" in m.__file__; assert not any(map(u.find_spec, ("model", "runtime", "spec", "src")))'; \
$(1) "$$root/$(WHEEL)/bin/pytest" -p no:cacheprovider -c "$$root/pyproject.toml" --rootdir "$$root" $(LOGGED)
endef

test-wheel: installed-wheel  ## install the wheel elsewhere and run the tests against it
	$(call from_nowhere) "$$root/tests"

# Modules that use each library and all of the command line, and take less than a minute.
QUICK := $(foreach name,adoption arithmetic array_files blob_access blob_from_arrays blob_proto blob_protocols \
    buffer caffemodel dispatch exports help host learn machine memory memory_close mode opencl proofs public, \
    $(wildcard tests/*/test_$(name).py tests/*/*/test_$(name).py)) tests/runtime/interop -m 'not long'

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

NEWEST := $(VENV)-newest
test-newest-python:  ## quick tests with the newest other Python of this machine, if there is one
	rm -rf $(NEWEST)
	@set -eu; found=$$($(PYTHON) requirements/newest_python.py); [ -z "$$found" ] || $(MAKE) --no-print-directory newest FOUND="$$found"

newest:
	$(FOUND) --version
	$(FOUND) -m venv $(NEWEST)
	@$(call locked_pip,$(NEWEST))
	$(NEWEST)/bin/python requirements/declared.py $(EXTRAS) > $(NEWEST)/declared.txt
	$(NEWEST)/bin/python $(PIP_INSTALL) --requirement $(NEWEST)/declared.txt --requirement requirements/test.txt
	$(NEWEST)/bin/python $(EDITABLE)
	$(NEWEST)/bin/pytest $(LOGGED) -p no:cacheprovider $(QUICK)

lock: $(STAMPS)/lock  ## write requirements/hashes.txt: the hashes of all files of each version in constraints.txt
	$(BIN)/uv pip compile --quiet --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links requirements/constraints.txt --output-file requirements/hashes.txt

# A name of a library has its version in it, so another Debian may not have it; then tests that need it are skipped.
system-deps:  ## install the Debian packages (as root)
	@missing=$$( \
	    for name in $(SYSTEM_LIBRARIES); do dpkg --status $$name >/dev/null 2>&1 || echo $$name; done; \
	    for pair in $(SYSTEM_PROGRAMS); do command -v $${pair%:*} >/dev/null || echo $${pair#*:}; done); \
	if [ -n "$$missing" ]; then apt-get update && \
	    for name in $$missing; do apt-cache show $$name >/dev/null 2>&1 && echo $$name || \
	        echo "there is no package $$name here" >&2; done | xargs apt-get install --yes --no-install-recommends; fi

clean:  ## remove everything that was made here
	rm -rf $(VENV) $(VENV)-wheel $(VENV)-lowest $(VENV)-newest $(VENV)-hostcuda
	rm -rf build dist src/*.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find model runtime spec src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
