#!/bin/sh
# Builds the plug-ins for GPUs with nvcc (warnings are errors) and hipcc where they are found, and runs what needs no GPU: every kernel of
# the list has a form, each plug-in loads and says clearly what is missing here. Needs the library built (make build).
set -e
cd "$(dirname "$0")/.."
bin=.venv/bin
out=build/cuda-check
hints=${CUDA_HOME:+$CUDA_HOME/bin:}/usr/local/cuda/bin:build/cuda/nvidia/cu13/bin
PATH="$PATH:$hints"
found=""
# one architecture, and little optimisation, which takes a third of the time: the check is of the source
quick="-Xcicc -O0 -Xptxas -O0"
configure="cmake -S . -B $out -G Ninja -DASTERISM_PYTHON=OFF -DPython_EXECUTABLE=$PWD/$bin/python -DASTERISM_CUDA_ARCH=90"
if command -v nvcc >/dev/null; then
  configure="$configure -DASTERISM_CUDA=ON -DASTERISM_CUDA_FLAGS=$(echo $quick | tr ' ' ';')"
  found="cuda"
  nvcc -x cu -std=c++20 -arch=sm_90 --extended-lambda -Werror all-warnings -diag-suppress 20012,177,550 -Isrc -c \
    tests/cpp/device/dialect.kernels.cpp -o /dev/null
  # what is opened at run time is declared here: it is compared with the vendor's headers where those are (the compiler's wheels lack them)
  wheels=""
  for folder in .venv/lib/python3*/site-packages/nvidia/*/include; do
    [ -d "$folder" ] && wheels="$wheels -I$folder"
  done
  for pair in la/cusparse comm/nccl comm/nvshmem; do
    if echo "#include <${pair#*/}.h>" | nvcc -x cu -std=c++20 -arch=sm_90 $wheels -E - >/dev/null 2>&1; then
      nvcc -x cu -std=c++20 -arch=sm_90 $wheels -c tests/cpp/${pair}_constants.cpp -o /dev/null
      echo "${pair#*/}.h: as declared here"
    else
      echo "${pair#*/}.h is not here: what we declare of it was not compared"
    fi
  done
fi
if command -v hipcc >/dev/null; then
  configure="$configure -DASTERISM_HIP=ON"
  found="$found hip"
fi
if [ -z "$found" ]; then
  echo "neither nvcc nor hipcc is here: no plug-in was built"
  exit 0
fi
$configure >/dev/null
$bin/python scripts/gpu_stencils.py $out/stencils
# without hipcc nvcc takes texts for HIP, whose names are mapped; they differ from those for CUDA in names and lanes alone: two dtypes
by_nvcc="$(ls $out/stencils/*.cu) $(ls $out/stencils/*_float64.hip $out/stencils/*_complex64.hip)"
by_hipcc=""
case "$found" in
  hip) by_nvcc="" by_hipcc=$(ls $out/stencils/*.hip) ;;
  *hip) by_nvcc=$(ls $out/stencils/*.cu) by_hipcc=$(ls $out/stencils/*.hip) ;;
esac
each() {  # a command for each of the texts, on all cores
  texts=$1
  shift
  [ -z "$texts" ] || echo "$texts" | tr ' ' '\n' | xargs -P "$(nproc)" -I TEXT "$@" TEXT -o /dev/null
}
each "$by_hipcc" hipcc -c --offload-arch=gfx90a --cuda-device-only -O2 -Wall -Werror
each "$by_nvcc" nvcc -x cu -std=c++17 -fatbin -arch=sm_90 $quick -Werror all-warnings -Itests/gpu_emulation/warp
echo "stencils: $(echo $by_nvcc $by_hipcc | wc -w) texts compile"
for name in $found; do
  log=$out/$name.log
  if ! cmake --build $out --target asterism_$name >$log 2>&1; then
    cat $log
    exit 1
  fi
  $bin/python scripts/gpu_forms.py $out/libasterism_$name.so
  ASTERISM_GPU_PLUGIN=$out/libasterism_$name.so $bin/python - $name <<'P'
import sys

from asterism import _core

found, text = _core.gpu_available(sys.argv[1])
print(f"{sys.argv[1]}: the plug-in loads and says: {text}")
assert found or ("does not load" not in text and "interface version" not in text), text
P
done
