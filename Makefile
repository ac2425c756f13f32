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

.PHONY: demo test quick lint format types bench docs fuzz reproduce clean

$(VENV)/core: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit("stair needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
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

quick: $(VENV)/test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/test
	$(BIN)/mypy

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

clean:
	rm -rf $(VENV) build demo site *.egg-info src/*.egg-info src/stair/*/_*.c src/stair/*/*/_*.c src/stair/*/*.so src/stair/*/*/*.so
