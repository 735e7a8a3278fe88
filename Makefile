# The two commands of the README are `make demo` and `make test`; each does all the set-up it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -q
STAMP := $(VENV)/.tools
export PATH := $(CURDIR)/$(BIN):$(PATH)
# containers run as root, which Open MPI wants confirmed
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export PRTE_ALLOW_RUN_AS_ROOT := 1
export PRTE_ALLOW_RUN_AS_ROOT_CONFIRM := 1
# ranks of tests share a node: Open MPI looks for networks in vain otherwise, with libfabric for a second in every MPI_Init, and with
# UCX for a twentieth of a second of every window
export OMPI_MCA_btl ?= ^ofi
export OMPI_MCA_osc ?= ^ucx
# compiled once, not by each of the thousands of processes that tests start
export PYTHONDONTWRITEBYTECODE :=
export ASTERISM_DATA ?= $(if $(wildcard ../shared/data/MANIFEST.csv),$(abspath ../shared/data),)

# of pytest: one more than cores, as tests that start ranks or processes wait in part
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
# of ctest; a test on ranks counts as two. Ranks mostly wait while they begin and end
JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? 2 * n : 16)))

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): scripts/requirements.txt
	@$(PYTHON) -c 'import sys, sysconfig, os; sys.exit("Python 3.10 or newer is needed") if sys.version_info < (3, 10) else None; \
	  os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) or sys.exit("Python.h is missing: apt-get install python3-dev")'
	@c++ -std=c++20 -x c++ -fsyntax-only - < /dev/null || { echo "a C++20 compiler is needed: apt-get install g++"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "the venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PIP) install -U pip
	$(PIP) install -r scripts/requirements.txt
	@touch $@

setup: $(STAMP)  ## the virtual environment with all tools

ifdef ASTERISM_BUILT  # continuous integration: what the first step has built and installed
build: $(STAMP)
else
build: $(STAMP)  ## compile and install into the environment
	@ls -d $(VENV)/lib/*/site-packages/asterism-0*.dist-info > /dev/null 2>&1 && $(PIP) uninstall -y asterism || true  # its name before
	@start=$$(date +%s); \
	$(BIN)/python scripts/with_progress.py $(PIP:-q=-v) install --no-build-isolation --no-deps -e . -C build-dir=build/release && \
	echo "built in $$(( $$(date +%s) - start )) s"
endif

demo: build  ## solve two problems, write a report with pictures
	$(BIN)/python examples/demo.py

test: build test-cpp test-python test-kernels test-examples  ## all tests

build-tests: build  ## compile the C++ tests, the emulated GPU and the kernels for older instruction sets
	@scripts/ensure_gtest.sh $(VENV)
	cmake -S . -B build/release -DASTERISM_TESTS=ON -DGTest_ROOT=$(CURDIR)/$(VENV)/deps/usr > /dev/null
	cmake --build build/release --target cpp_tests

test-cpp: build-tests  ## C++ tests, on 1 to 4 ranks
	ctest --test-dir build/release --output-on-failure -j $(JOBS)

$(VENV)/.test-tools: $(STAMP) scripts/requirements-tests.txt
	$(PIP) install -r scripts/requirements-tests.txt
	@touch $@

test-python: build $(VENV)/.test-tools  ## Python tests, on 1 to 4 ranks
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-kernels: build-tests  ## Python tests of solvers with kernels for older instruction sets
	scripts/test_kernels.sh

test-examples: build  ## every example, each asserts its number
	@mkdir -p build/examples; cd build/examples; \
	for e in $(CURDIR)/examples/[0-9]*.py; do echo "$$e"; $(CURDIR)/$(BIN)/python $$e > /dev/null || exit 1; done

lint: $(STAMP)  ## format, lint, types, floors
	$(BIN)/ruff format --check python tests examples bench scripts _build
	$(BIN)/ruff check python tests examples bench scripts _build
	$(BIN)/clang-format --dry-run -Werror $$(git ls-files '*.cpp' '*.hpp')
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python scripts/check_floors.py

format: $(STAMP)  ## rewrite all sources in the project's format
	$(BIN)/ruff format python tests examples bench scripts _build
	$(BIN)/ruff check --fix -q python tests examples bench scripts _build
	$(BIN)/clang-format -i $$(git ls-files '*.cpp' '*.hpp')

sanitize: $(STAMP)  ## C++ tests under the address and undefined-behaviour sanitizers, also on 3 ranks, and those of comm on 2 (without leaks: MPI has its own)
	@scripts/ensure_gtest.sh $(VENV)
	cmake -S . -B build/asan -G Ninja -DASTERISM_PYTHON=OFF -DASTERISM_TESTS=ON -DASTERISM_SANITIZE=address,undefined \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_PREFIX_PATH=$(CURDIR)/$(VENV)/deps/usr > /dev/null
	cmake --build build/asan
	ctest --test-dir build/asan --output-on-failure -L serial -j $(JOBS)
	ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build/asan --output-on-failure -L mpi -R '_3_ranks|comm_.*_2_ranks' -j $(JOBS)

tsan: $(STAMP)  ## C++ tests that use threads, under the thread sanitizer
	@scripts/ensure_gtest.sh $(VENV)
	cmake -S . -B build/tsan -G Ninja -DASTERISM_PYTHON=OFF -DASTERISM_TESTS=ON -DASTERISM_SANITIZE=thread \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_PREFIX_PATH=$(CURDIR)/$(VENV)/deps/usr > /dev/null
	cmake --build build/tsan
	ASTERISM_NUM_THREADS=3 ctest --test-dir build/tsan --output-on-failure -L serial -E fuzz -j $(JOBS)

FUZZ_SECONDS ?= 60
fuzz: build  ## the readers under libFuzzer (clang) for FUZZ_SECONDS; a planted bug must be found first
	@command -v clang++ > /dev/null || { echo "clang++ is missing: apt-get install clang"; exit 1; }
	cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DASTERISM_PYTHON=OFF \
	  -DASTERISM_SANITIZE=fuzzer-no-link,address,undefined -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python > /dev/null
	cmake --build build/fuzz --target fuzz_readers fuzz_readers_planted
	$(BIN)/python tests/fuzz/seeds.py build/fuzz/seeds
	scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

cuda-check: build  ## build the plug-ins for GPUs, warnings as errors; nvcc comes from PyPI where it is absent (105 MB, once)
	@command -v nvcc > /dev/null || test -x /usr/local/cuda/bin/nvcc || test -x build/cuda/nvidia/cu13/bin/nvcc || \
	  $(PIP) install --target build/cuda 'cuda-toolkit[nvcc,cccl]==13.0.*'
	scripts/cuda_check.sh

gpu: $(STAMP)  ## the same as build, with the plug-in for CUDA
	$(BIN)/python scripts/with_progress.py $(PIP:-q=-v) install --no-build-isolation --no-deps -e . -C build-dir=build/release -C cmake.define.ASTERISM_CUDA=ON

gpu-check:  ## on a machine with CUDA, no network needed: build, test and measure; writes build/gpu-check/*.json
	scripts/gpu_check.sh

install-test: build  ## a C++ project finds the installed package; a fresh environment installs it by pip
	scripts/install_test.sh

wheel: $(STAMP)  ## the wheel for release, tried with Open MPI, MPICH and neither
	scripts/build_wheel.sh

bench: build  ## compare with STREAM and the peers found; raw JSON under bench/results
	$(BIN)/python bench/run.py

table: build  ## the tables of real matrices and of multigrid in docs/reference
	$(BIN)/python bench/run.py --only by_default
	$(BIN)/python bench/tables.py --real-matrices
	$(BIN)/python scripts/multigrid_table.py

docs: build  ## the site of the documentation, in build/docs
	$(PIP) install -r scripts/requirements-docs.txt
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

clean:  ## build trees only
	rm -rf build

.PHONY: help setup build build-tests demo test test-cpp test-python test-kernels test-examples lint format sanitize tsan fuzz cuda-check gpu gpu-check install-test wheel bench table docs clean
