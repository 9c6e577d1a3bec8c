# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
PIP_FLAGS ?=
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test test-all test-versions lint docs site bench coverage operators compatibility clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" -q

test-all: $(STAMP) lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

# The quick tests with other versions of what anyshape stands on; FLAGS="--only oldest --sample" are passed on.
test-versions: $(STAMP)
	PIP_FLAGS="$(PIP_FLAGS)" $(BIN)/python benchmarks/versions.py $(FLAGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of the rules live in the package, so that `anyshape explain` has them; tables are made from the code.
docs: $(STAMP)
	$(BIN)/python -m anyshape.results.explanations docs/rules
	$(BIN)/python -m tests.test_docs docs/how_it_works.md docs/index.md docs/api.md
	$(BIN)/python docs/_site/map_of_sizes.py docs/map_of_sizes.svg

# The pages of docs/ as they are, with reports of real exports. Warnings are errors.
site: $(STAMP)
	$(BIN)/python docs/_site/gallery.py
	rm -rf site
	$(BIN)/python -m sphinx -b html -c docs/_site -d build/doctrees -E -n -W --keep-going -q . site
	@echo "open site/index.html"

# FLAGS=--json keeps the figures, of which docs/performance.md is made.
bench: $(STAMP)
	$(BIN)/python benchmarks/export_time.py $(FLAGS)

# Both go on where the last run stopped; FLAGS="--only swin" or FLAGS="--shard 1/4" are passed on. The pages are made of what the
# last program of each is told to --keep.
coverage: $(STAMP)
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) --no-deps -r benchmarks/requirements.txt
	OMP_NUM_THREADS=1 $(BIN)/anyshape sweep benchmarks/coverage.py -o build/coverage --resume $(FLAGS)
	$(BIN)/python benchmarks/coverage_tables.py build/coverage

operators: $(STAMP)
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) --no-deps -r benchmarks/requirements-operators.txt
	OMP_NUM_THREADS=1 $(BIN)/anyshape sweep benchmarks/operators.py -o build/operators --resume --seconds 120 $(FLAGS)
	$(BIN)/python benchmarks/operator_tables.py build/operators

# What other tools make of the files, in a folder of their own: .venv stays as it is. Install scripts of npm packages, which fetch
# libraries for GPUs, are not run.
compatibility: $(STAMP)
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) --no-deps --upgrade --target .tools/python -r benchmarks/requirements-compatibility.txt
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix .tools onnxruntime-node@1.30.0 onnxruntime-web@1.30.0
	OMP_NUM_THREADS=1 NODE_MODULES=.tools/node_modules PYTHONPATH=.tools/python $(BIN)/python benchmarks/compatibility.py $(FLAGS)
	$(BIN)/python -m tests.test_docs docs/compatibility.md

# torch comes first and pinned: an open range would pull several gigabytes of CUDA packages.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt torch
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e ".[cpu,dev]"
	touch $(STAMP)

clean:
	rm -rf .venv .versions .tools dist build site .pytest_cache .mypy_cache .ruff_cache
