#!/usr/bin/env bash
# The wheel for release, in dist/: kernels for x86-64-v2, v3 and v4, of which glibc takes the best that the CPU has, and plug-ins for Open MPI
# and MPICH; then tried in clean environments with each MPI and with none.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
new() { python3 -m venv "$dir/$1" && "$dir/$1/bin/pip" -q --disable-pip-version-check install "${@:2}"; }

new headers_openmpi 'openmpi>=5,<6'
new headers_mpich 'mpich>=5,<6'
rm -rf dist build/wheel
"$root/.venv/bin/pip" -q --disable-pip-version-check wheel . --no-deps --no-build-isolation -w dist -C build-dir=build/wheel \
  -C "cmake.define.ASTERISM_ARCH=x86-64-v2;x86-64-v3;x86-64-v4" -C cmake.define.ASTERISM_TESTS=OFF \
  -C "cmake.define.ASTERISM_MPI_INCLUDES=$dir/headers_openmpi/include;$dir/headers_mpich/include"
wheel=$(ls dist/asterism_sparse-*.whl)
for abi in openmpi mpich; do
  "$root/.venv/bin/python" -m zipfile -l "$wheel" | grep -q "libasterism_mpi_$abi.so" || { echo "$wheel has no plug-in for $abi"; exit 1; }
done

cat > "$dir/try.py" <<'PY'
import sys

import asterism as am
from asterism import _core

kernels = _core.build_info()["arch"]
if len(sys.argv) > 2:
    assert kernels == sys.argv[2], (kernels, "loaded, not", sys.argv[2])
comm = None
if sys.argv[1] != "none":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    assert ("Open MPI" in MPI.Get_library_version()) == (sys.argv[1] == "openmpi"), MPI.Get_library_version()
    assert comm.size == 3, comm.size
A = am.gallery.poisson((60, 60), comm)
seen = []
for options in ("-ksp_type cg -pc_type amg", "-ksp_type gmres -pc_type asm -sf_transport p2p", "-ksp_type cg -pc_type jacobi -sf_transport shm"):
    x, info = am.solve(A, A.make_vector(fill=1.0), options=options, rtol=1e-8)
    seen.append(info.iterations)
if comm is None or comm.rank == 0:
    print(f"{sys.argv[1]}: {seen} iterations, kernels for {kernels}")
PY
new none "$wheel"
"$dir/none/bin/python" "$dir/try.py" none
# which kernels glibc takes where the CPU lacks what the others need, as far as this one can show it
case "$(/lib64/ld-linux-x86-64.so.2 --help | grep -oE '^ *x86-64-v[234] \(supported' | head -1)" in
  *v4*) best=x86-64-v4 ;;
  *v3*) best=x86-64-v3 ;;
  *) best=x86-64-v2 ;;
esac
"$dir/none/bin/python" "$dir/try.py" none $best
[ $best = x86-64-v2 ] || GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2 "$dir/none/bin/python" "$dir/try.py" none x86-64-v2
[ $best != x86-64-v4 ] || GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F "$dir/none/bin/python" "$dir/try.py" none x86-64-v3
for abi in openmpi mpich; do
  new "$abi" "$wheel[$abi]"
  launch=("$dir/$abi/bin/mpiexec" -n 3)
  [ $abi = openmpi ] && launch+=(--map-by :oversubscribe)
  PATH="$dir/$abi/bin:$PATH" VIRTUAL_ENV="$dir/$abi" timeout 120 "${launch[@]}" "$dir/$abi/bin/python" "$dir/try.py" "$abi"
done
echo "$wheel"
