# Every target makes or reuses .venv and installs pinned packages first; CONTRIBUTING.md says what each is for.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# two test workers on two cores: one thread each
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow coverage lint format bench clean

demo: $(VENV)/.installed-demo
	$(BIN)/adawidth demo --force

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m slow -n 2 --dist loadgroup

# the quick tests again, with the lines that they reach; compiled loops are not seen
coverage: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --cov --cov-report term:skip-covered

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# hours on a quiet machine; 9 GB of memory
bench: $(VENV)/.installed-dev
	$(INSTALL) hnswlib
	for name in rescoring latency resident growth rivals first_query index_add crash faults busy tables figures; do $(ONE_THREAD) $(BIN)/python benchmarks/$$name.py || exit 1; done

$(VENV)/.installed-demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[train,report]" wordllama
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[dev]"
	touch $@ $(VENV)/.installed-demo

clean:
	rm -rf $(VENV) build dist adawidth-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
