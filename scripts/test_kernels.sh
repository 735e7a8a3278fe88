#!/bin/sh
# Python tests of solvers with the library's kernels for instruction sets older than this CPU's; make test-cpp builds them.
cd "$(dirname "$0")/.." || exit 1
failed=""
for folder in build/release/instruction_sets/*; do
  [ -d "$folder" ] || continue  # none is older
  arch=$(basename "$folder")
  export OMP_NUM_THREADS=1 LD_LIBRARY_PATH="$PWD/$folder" ASTERISM_TEST_ARCH="$arch"
  if why=$(.venv/bin/python -c "from asterism import _core; _core.check_cpu()" 2>&1); then
    echo "kernels for $arch"
    .venv/bin/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal tests/python/test_solve.py tests/python/test_preconditioners.py \
      tests/python/test_rounding.py tests/python/test_recovery.py \
      -k "recovery or (not ranks and not schwarz and not 3-D and not elasticity and not real_matrices)" ||
      failed="$failed $arch"
  else
    case "$why" in
      *"which this CPU does not have"*) echo "kernels for $arch: skipped, this CPU cannot run them" ;;
      *) echo "$why" && failed="$failed $arch" ;;
    esac
  fi
done
[ -z "$failed" ] || { echo "tests failed with kernels for$failed"; exit 1; }
