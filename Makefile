# The two commands of the README: make demo, make test. Both set up everything they need and can be repeated.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test net mutants docs release-check format clean

demo: $(VENV)/demo.installed
	$(BIN)/dissensus demo

test: $(VENV)/test.installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

# What the tool says today, compared with what it said: tests/net/cases.toml. Real data where DISSENSUS_DATA names them.
net: $(VENV)/test.installed
	OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m tests.net

# Small changes of a room's code that its tests should notice: the first N of 200, and how many were caught.
N ?= 200
mutants: $(VENV)/test.installed
	$(BIN)/python -m tests.mutants $(ROOM) $(N) $(NEAR)

# The site, for reading from disk: site/index.html. Any warning is an error, and so is a search that leads elsewhere.
docs: $(VENV)/docs.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m tests.docs.search

# What is published: built, installed on every Python that is found, tried out, and looked through.
release-check: $(VENV)/release.installed
	$(BIN)/python .ci/release_check.py

format: $(VENV)/test.installed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) demo site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

PYPROJECTS := $(wildcard packages/*/pyproject.toml)

$(VENV)/%.installed: requirements/%.txt $(PYPROJECTS) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r $<
	touch $@

$(VENV)/release.installed: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) build
	touch $@

# Two peers that our curvature is compared with, without what they name as dependencies: curvlinops asks for packages that pull
# in a second PyTorch, and needs only these.
PEERS := curvlinops-for-pytorch pyhessian einconv einops jaxtyping linear_operator opt-einsum wadler_lindig

$(VENV)/test.installed: requirements/test.txt $(PYPROJECTS) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r $<
	$(PIP) --no-deps $(PEERS)
	touch $@
