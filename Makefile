# Every target sets itself up: the first run creates .venv and installs the locked dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The repository itself, built by what is installed already.
EDITABLE = $(PIP) --no-deps --no-build-isolation -e .
PROTO := estimator/pb/estimator.proto estimator/pb/service.proto fairway/capacity/v1/capacity.proto \
	node_agent/pb/podresources.proto
FUZZ_SECONDS ?= 600
FUZZ_CASES ?= 10000
CRASH_SCHEDULES ?= 100
# Stories drawn for `make simulate`, and how many processes play them.
SEEDS ?= 20000
SIMULATE_PROCESSES ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint types imports proto proto-check manifests unit fuzz crash simulate e2e bench image-check lock clean

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

demo: $(VENV)/.run ## Start the real programs on sample clusters: what fits, and who gets it when
	@$(BIN)/python -m estimator.demo
	@$(BIN)/python -m sandbox
	@echo; echo "The command is $(BIN)/fairway. Ask it about the sample clusters, or about dumps of your own:"
	@echo "  $(BIN)/fairway report --demo"
	@echo "  $(BIN)/fairway top --demo"
	@echo "  $(BIN)/fairway hours --demo"
	@echo "  $(BIN)/fairway notify --demo --dry-run"
	@echo "  $(BIN)/fairway explain --demo --gpus 8 --nodes 2"
	@echo "  $(BIN)/fairway what-if --demo --drop-node h100-0"

test: lint types imports proto-check unit ## Everything that CI checks

lint: $(VENV)/.dev ## Style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

imports: $(VENV)/.dev ## The floors of the house
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

# Bytecode is kept whatever the caller's environment says: some two hundred programs are started, and each would
# compile all that it imports.
unit: $(VENV)/.dev ## The test suite
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto

proto: $(VENV)/.dev ## Generate the protobuf code again
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out=. --pyi_out=. $(PROTO)

proto-check: $(VENV)/.dev ## Is the checked-in protobuf code what the sources generate?
	@rm -rf build/proto && mkdir -p build/proto
	@$(BIN)/python -m grpc_tools.protoc -I proto --python_out=build/proto --pyi_out=build/proto $(PROTO)
	@for f in $$(cd build/proto && find . -type f); do \
		cmp -s "build/proto/$$f" "$$f" || { echo "$$f is not what proto/ generates: run 'make proto' and commit"; exit 1; }; \
	done; echo "generated protobuf code is up to date"

manifests: $(VENV)/.dev ## Make recording rules and dashboards of their tables, and the Helm chart's templates of the manifests
	$(BIN)/python -m manifests.observability
	$(BIN)/python -m manifests.templating

fuzz: $(VENV)/.dev ## Random requests to a real server, FUZZ_SECONDS=600 long; FUZZ_CASES=10000 answers against the truth
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m tests.fuzz --cases $(FUZZ_CASES)

crash: $(VENV)/.dev ## Kill the dispatcher at each of its writes in turn, CRASH_SCHEDULES=100 times over
	$(BIN)/python -m tests.crash --schedules $(CRASH_SCHEDULES)

simulate: $(VENV)/.dev ## A whole Karmada in virtual time, SEEDS=20000 stories with faults; what breaks is shrunk to a short one
	$(BIN)/python -m tests.simulation --seeds 0..$(SEEDS) --processes $(SIMULATE_PROCESSES) --shrink 3

e2e: $(VENV)/.dev ## Against a whole real Karmada; needs KUBEBUILDER_ASSETS and KARMADA_ASSETS
	$(BIN)/python -m pytest -n 0 tests/e2e

bench: $(VENV)/.dev ## All benchmarks, about six minutes; BENCH='--quick' for one
	$(BIN)/python -m benchmarks $(BENCH)

image-check: $(VENV)/.dev ## Run the steps of the Dockerfile in a folder, without an engine
	PIP_QUIET=1 $(BIN)/python -m tests.packaging.image_steps build/image

lock: $(VENV)/.dev ## Resolve the dependencies again
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--extra dra pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--group build -c requirements/dev.txt -o requirements/build.txt

clean: ## Remove what make has made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Fairway needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try make PYTHON=python3.12"; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt requirements/build.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing what running needs"
	@$(PIP) --require-hashes -r requirements/run.txt -r requirements/build.txt
	@$(EDITABLE)
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing what development needs"
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(EDITABLE)
	@touch $@ $(VENV)/.run
