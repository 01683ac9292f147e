# Every target makes or reuses .venv and installs pinned packages first; CONTRIBUTING.md says what each is for.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# two test workers on two cores: one thread each
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow test-engines test-integrations test-serve test-browser coverage lint format bench paper paper-check clean docs

demo: $(VENV)/.installed-demo
	$(BIN)/adawidth demo --force

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow and not engines and not integrations and not serve and not browser" -n 2 --dist loadfile

# real databases, started by the tests themselves; Milvus apart, because a machine runs only one such server
test-engines: $(VENV)/.installed-engines
	$(ONE_THREAD) $(BIN)/python -m pytest -m engines -k "not milvus" -n 2 --dist loadfile tests/engines
	$(ONE_THREAD) $(BIN)/python -m pytest -m engines -k milvus tests/engines

# schemathesis over the OpenAPI document, and several workers at one folder
test-serve: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m serve -n 2 tests/serve

# LangChain, LlamaIndex, Haystack, MTEB, scikit-learn, ONNX and the like, at the versions in constraints.txt
test-integrations: $(VENV)/.installed-integrations
	$(ONE_THREAD) $(BIN)/python -m pytest -m integrations -n 2 --dist loadfile -o asyncio_default_fixture_loop_scope=function tests/integrations tests/test_docs.py

# the page of the service in Chromium, over the bundled docstrings
test-browser: $(VENV)/.installed-browser
	$(ONE_THREAD) $(BIN)/python -m pytest -m browser tests/browser

test-slow: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m slow -n 2 --dist loadgroup

# the quick tests again, with the lines that they reach; compiled loops are not seen
coverage: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow and not engines and not integrations and not serve and not browser" -n 2 --dist loadfile --cov --cov-report term:skip-covered

# the site, in build/site; a warning is an error, and nothing is fetched. tests/test_site.py builds it too
docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/doctrees . build/site

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# hours on a quiet machine; 9 GB of memory
bench: $(VENV)/.installed-engines
	$(INSTALL) hnswlib rabitqlib scalable-vs scann usearch
	for name in rescoring latency resident growth rivals first_query cold index_add crash faults mutations busy tables figures; do $(ONE_THREAD) $(BIN)/python benchmarks/$$name.py || exit 1; done
	$(ONE_THREAD) $(BIN)/python benchmarks/engines.py $(DATASETS)/clues --encoder ada002
	$(ONE_THREAD) $(BIN)/python benchmarks/ray_workers.py
	$(ONE_THREAD) $(BIN)/python benchmarks/serve.py
	$(ONE_THREAD) $(BIN)/python benchmarks/paper_data.py $(DATASETS) --out $(MADE)
	$(ONE_THREAD) $(BIN)/python benchmarks/serve_chroma.py $(MADE)/union --encoder wordllama

# what docs/paper.md rests on, cell by cell: interrupt it when you like, run it twice side by side; days of one core from nothing
DATASETS ?= ../shared/datasets
MADE ?= build/paper-data
MINUTES ?= inf
paper: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python benchmarks/paper_data.py $(DATASETS) --out $(MADE)
	$(ONE_THREAD) $(BIN)/python tools/paper.py measure --datasets $(DATASETS) --datasets $(MADE) --minutes $(MINUTES)
	$(BIN)/python tools/paper.py write
	$(BIN)/python tools/paper_page.py

paper-check: $(VENV)/.installed-dev
	$(BIN)/python tools/paper.py check

$(VENV)/.installed-demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[train,report]" wordllama
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[dev]"
	touch $@ $(VENV)/.installed-demo

$(VENV)/.installed-engines: $(VENV)/.installed-dev
	$(INSTALL) --editable ".[dev,engines]"
	touch $@

$(VENV)/.installed-integrations: $(VENV)/.installed-dev
	$(INSTALL) --editable ".[dev,integrations]"
	touch $@

# root may install Chromium; without one, and without root, the tests say so and are skipped
$(VENV)/.installed-browser: $(VENV)/.installed-dev
	$(INSTALL) --editable ".[dev,browser]"
	command -v chromium || command -v google-chrome || test "$$(id -u)" != 0 || { apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium; }
	touch $@

clean:
	rm -rf $(VENV) build dist adawidth-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
