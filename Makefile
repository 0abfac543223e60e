# mlnav: `make help` lists the targets. Everything is installed into .venv and built in build/.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL: # the tools below use both cores by themselves
.DEFAULT_GOAL := install
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
# Optional parts of the package to install, as pip names them. Training takes torch and films and recordings
# take rerun-sdk, which are large: without them `make test` skips their tests.
# make EXTRAS=dev,onnx,report,sim,train,viz test
EXTRAS ?= dev,onnx,report,sim

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PY := $(BIN)/python
MLNAV := $(BIN)/mlnav
DEPENDENCIES := $(VENV)/.dependencies-$(EXTRAS)
PIP := $(PY) -m pip --disable-pip-version-check
# cmake, ninja and the checkers are the venv's pinned ones.
export PATH := $(BIN):$(PATH)

CPP_SOURCES := $(sort $(shell find cpp -name '*.hpp' -o -name '*.h' -o -name '*.cpp' 2>/dev/null))
CORE_SOURCES := $(filter cpp/src/%.cpp,$(CPP_SOURCES))
MODULE_SOURCES := $(filter cpp/include/% cpp/src/% cpp/bindings/%,$(CPP_SOURCES))
CMAKE_FILES := CMakeLists.txt $(wildcard cmake/*) cpp/CMakeLists.txt cpp/bindings/CMakeLists.txt

##@ Use

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(VENV)/.installed ## Create .venv and install mlnav into it, editable (the default)

# TERRAIN: classes (10/.07), recipes (name or YAML file) or elevation GeoTIFFs, on which PAIRS pairs of start
# and goal are drawn.
TERRAIN ?= terrains/demo.yaml
PAIRS ?= 4
OUT ?= out/demo
SEED ?= 1
DEMO_FLAGS ?= --heuristics none,network --checker verified --limits flight_like --workers 2

.PHONY: demo
demo: install ## Drive TERRAIN=FILE|RECIPE|CLASS with and without the network, results in out/demo
	@$(MLNAV) compare --terrain $(TERRAIN) $(DEMO_FLAGS) --pairs $(PAIRS) --seed $(SEED) --out $(OUT) --force
	@$(MLNAV) traverse --terrain $(firstword $(TERRAIN)) --heuristic network --seed $(SEED) --out $(OUT)/traverse --force || \
	  [ $$? -eq 1 ] # 1: it ended short of the goal, which is a result
	@rm -rf $(OUT)/campaign
	@$(MLNAV) campaign run sim/campaigns/smoke.yaml --out $(OUT)/campaign --workers 2
	@$(MLNAV) campaign report $(OUT)/campaign

##@ Work

.PHONY: test
test: cpp-test ## All tests: C++ (plain, sanitizers, flight rules), then Python
	@echo "== pytest"
	@$(PY) -m pytest -q -n 2 --dist loadfile

.PHONY: cpp-test
cpp-test: system-test install ## The C++ tests alone
	@$(call preset,dev)
	@$(call preset,asan)
	@$(call preset,flight)

.PHONY: check
check: install ## Formatting, lint and types, nothing is changed
	@echo "== clang-format"; $(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES) $(wildcard tests/consumer/*.cpp)
	@echo "== ruff"; $(BIN)/ruff format --check . && $(BIN)/ruff check .
	@echo "== mypy"; $(BIN)/mypy
	@echo "== clang-tidy"; mkdir -p build; \
	  cmake --preset release >build/tidy.log 2>&1 || { cat build/tidy.log; exit 1; }
	@$(call tidy)
	@echo "check: clean"

.PHONY: format
format: install ## Format all sources and fix what ruff can fix
	@$(BIN)/clang-format -i $(CPP_SOURCES) $(wildcard tests/consumer/*.cpp)
	@$(BIN)/ruff check --fix --exit-zero . && $(BIN)/ruff format .

.PHONY: generate
generate: install ## Write what follows from the field tables of the core
	@$(PY) -m mlnav.config.generate

.PHONY: bench
bench: install ## Build the release core and run its benchmarks
	@cmake --preset release >/dev/null && cmake --build --preset release
	@for program in $$(find build/release/bench -maxdepth 1 -type f -executable 2>/dev/null | sort); do \
	  echo "== $$(basename $$program)"; $$program; done

.PHONY: wheel
wheel: install ## Build dist/*.whl and dist/*.tar.gz
	@$(PY) -m build --no-isolation --outdir dist

.PHONY: clean
clean: ## Remove builds, outputs and caches; .venv stays (rm -rf .venv for that)
	@rm -rf build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis $(VENV)/.installed
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# ------------------------------------------------------------------------------------------ details

# Configure, build and test one preset of CMakePresets.json. The configure log is shown on failure.
define preset
echo "== C++ $(1)"; mkdir -p build; \
cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }; \
cmake --build --preset $(1) -- --quiet; \
ctest --preset $(1) --progress
endef

# Two at a time; xargs stops with an error when one of them found something.
define tidy
printf '%s\n' $(CORE_SOURCES) | \
  xargs -P 2 -n 1 $(BIN)/clang-tidy -p build/release --quiet 2> >(grep -v 'warnings generated\|^$$' >&2 || true)
endef

# The dependencies, from the pins: again only when the pins or the project file change.
$(DEPENDENCIES): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mlnav needs Python 3.11 or newer: make PYTHON=python3.x" >&2; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || \
	  { echo "no venv module: install your system's python3-venv package" >&2; exit 1; }
	@echo "== dependencies (a few minutes the first time)"
	@$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  extras = [r for e in "$(EXTRAS)".split(",") for r in p["optional-dependencies"][e]]; \
	  print(*p["dependencies"], *extras, sep="\n")' > $(VENV)/requirements.txt
	@$(PIP) install -qq -c constraints.txt -r $(VENV)/requirements.txt
	@touch $@

# The package itself, editable: Python changes need nothing, C++ changes rebuild the module
# (incrementally, in build/python).
$(VENV)/.installed: $(DEPENDENCIES) $(CMAKE_FILES) $(MODULE_SOURCES) | system-build
	@echo "== mlnav (editable)"
	@$(PIP) install -qq --no-build-isolation --no-deps -e .
	@touch $@

# What pip cannot bring. As root with apt-get it is said and installed, unless SYSTEM_INSTALL=no; otherwise it
# is named and nothing else is done. Without a compiler the header cannot be looked for, so it is asked for as
# well.
SYSTEM_INSTALL ?= yes
.PHONY: system-build system-test
system-build:
	@$(call need_system,command -v $(CXX) || missing+=" g++")
system-test:
	@$(call need_system,command -v $(CXX) || missing+=" g++"; \
	  $(CXX) -E -include gtest/gtest.h -x c++ /dev/null || missing+=" libgtest-dev")

# $(1): shell commands that add the names of missing packages to $missing.
define need_system
missing=""; \
{ $(1); } >/dev/null 2>&1; \
[ -z "$$missing" ] || if [ "$(SYSTEM_INSTALL)" = yes ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  echo "== the build needs$$missing: apt-get install, system-wide (make SYSTEM_INSTALL=no refuses)"; mkdir -p build; \
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing; } \
    >build/apt.log 2>&1 </dev/null || { cat build/apt.log; exit 1; }; \
else \
  echo "missing on this system, please install (Debian and Ubuntu names):$$missing" >&2; exit 1; \
fi
endef
