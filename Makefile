# `make plan` shows the tool at work from a clean clone; `make test` and `make check` say whether it is sound.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
TORCH ?= $(or $(CLUSTERWRIGHT_FRAMEWORKS),$(PYTHON))
EXAMPLE := examples/llama-3.1-70b/workload.toml

.PHONY: help plan test check format docs transcripts bench incidents soak fuzz matrix proofs clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/installed

plan: $(VENV)/installed ## plan Llama-3.1-70B and write the files that start it, under out/
	$(BIN)/clusterwright plan $(EXAMPLE) --out out/plan.json
	$(BIN)/clusterwright emit out/plan.json --target slurm --out out/slurm
	$(BIN)/clusterwright emit out/plan.json --target megatron --out out/megatron

test: $(VENV)/installed-dev ## all tests with coverage; says what could not be tested here
	.ci/programs
	PYTHON=$(PYTHON) .ci/libraries >$(VENV)/libraries.sh
	. $(VENV)/libraries.sh; $(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term

proofs: $(VENV)/installed-dev ## which program read which target's files, in docs/reference/targets.md
	.ci/programs
	PYTHON=$(PYTHON) .ci/libraries >$(VENV)/libraries.sh
	. $(VENV)/libraries.sh; CLUSTERWRIGHT_PROOFS=write $(BIN)/python -m pytest -q -p no:xdist tests/emitters

check: $(VENV)/installed-dev ## style, types, floors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src tests
	MYPYPATH=lab/incidents $(BIN)/mypy --strict lab/incidents
	$(BIN)/lint-imports

format: $(VENV)/installed-dev ## what ruff can put right by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/installed-dev ## the documentation, under docs/_build
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build

transcripts: $(VENV)/installed-dev ## run what the pages show, and write down what the tool prints
	$(BIN)/python docs/transcripts.py

bench: $(VENV)/installed-dev ## how fast the search is, on one core
	$(BIN)/python benchmarks/search.py --format json

incidents: ## record the incidents of the tests anew (root; TORCH names a Python that holds torch)
	$(TORCH) lab/incidents/record.py tests/checks/incidents

soak: $(VENV)/installed-dev ## the property tests, many more examples
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=soak tests

fuzz: $(VENV)/installed-dev ## broken inputs, many more of them
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=fuzz -k 'fuzz or any or broken or hostile' tests

matrix: ## the tests on every Python that is found here
	for version in 3.11 3.12 3.13; do \
	  python=$$(ls ~/.pyenv/versions/$$version.*/bin/python 2>/dev/null | tail -n 1 || true); \
	  python=$${python:-$$(command -v python$$version || true)}; \
	  if [ -z "$$python" ]; then echo "python$$version: not found here, not tested"; continue; fi; \
	  $$python -m venv $(VENV)/matrix-$$version; \
	  $(VENV)/matrix-$$version/bin/python -m pip install --quiet -e '.[docs,test]'; \
	  $(VENV)/matrix-$$version/bin/python -m pytest -n 2 -q; \
	done

clean: ## everything that was made here
	rm -rf $(VENV) out docs/_build .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
