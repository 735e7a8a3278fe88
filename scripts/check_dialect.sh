#!/bin/sh
# Compiles the portable kernels as CUDA and as HIP where those compilers are found. Nothing is run.
set -e
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
files="src/asterism/la/vector.kernels.cpp src/asterism/krylov/verdict.kernels.cpp tests/cpp/device/dialect.kernels.cpp"
found=0
if command -v nvcc >/dev/null; then
  found=1
  for f in $files; do
    nvcc -x cu -std=c++20 -arch=sm_90 --extended-lambda -Werror all-warnings -diag-suppress 20012,177,550 -Isrc -c "$f" -o "$out/k.o"
    echo "nvcc: $f compiles"
  done
fi
if command -v hipcc >/dev/null; then
  found=1
  for f in $files; do hipcc -x hip -std=c++20 --offload-arch=gfx90a -Isrc -c "$f" -o "$out/k.o" 2>/dev/null; echo "hipcc: $f compiles"; done
fi
[ $found = 1 ] || echo "neither nvcc nor hipcc is here: the dialect was not checked"
