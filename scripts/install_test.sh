#!/bin/sh
# As a user: pip install into an empty environment, import without MPI, and a C++ project on the installed package. The wheel is of the
# objects that `make build` has compiled; that pip's own environment for builds has all that CMake looks for is tried without compiling
# (`make wheel` compiles there).
set -e
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
.venv/bin/pip -q --disable-pip-version-check wheel --no-build-isolation --no-deps -C build-dir=build/release -w "$dir/wheel" .
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q --disable-pip-version-check install "$dir"/wheel/*.whl
python3 -m venv "$dir/builds"
PATH=/usr/bin:/bin .venv/bin/python -c "
import sys
sys.path.insert(0, '_build')
import asterism_backend
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open('pyproject.toml', 'rb') as f:
    print(*tomllib.load(f)['build-system']['requires'], *asterism_backend.get_requires_for_build_wheel(), sep='\n')
" >"$dir/requires.txt"
"$dir/builds/bin/pip" -q --disable-pip-version-check install -r "$dir/requires.txt"
PATH="$dir/builds/bin:/usr/bin:/bin" cmake -S . -B "$dir/configured" -DSKBUILD=1 -DPython_EXECUTABLE="$dir/builds/bin/python" >"$dir/configured.log" 2>&1 || { cat "$dir/configured.log"; exit 1; }
grep "MPI plug-ins" "$dir/configured.log"
cd "$dir"
"$dir/v/bin/python" -c "
import numpy as np, asterism as am
A = am.gallery.poisson((30, 30))
x, info = am.solve(A, np.ones(900), rtol=1e-10)
assert info.converged and np.linalg.norm(A @ x - 1) < 1e-9 * 30, info
D = np.array([[2.0, 1.0], [1.0, 3.0]])
assert np.allclose(D @ am.solve(D, np.ones(2), rtol=1e-10)[0], 1)
print('pip install: works without SciPy and MPI,', info.iterations, 'iterations')
"
"$dir/v/bin/asterism" inspect "$root/examples/data/bar.mtx.gz" >/dev/null
"$dir/v/bin/pip" --disable-pip-version-check show -q asterism-sparse
prefix=$("$dir/v/bin/python" -c "from asterism import _core as c; import pathlib; print(pathlib.Path(c.__file__).parent)")
cmake -S "$root/tests/install" -B "$dir/b" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$dir/b" >/dev/null
"$dir/b/user"
# the conda recipe, as rattler-build reads it; what it asks for comes from channels that are not asked here
"$dir/v/bin/pip" -q --disable-pip-version-check install py-rattler-build
"$dir/v/bin/python" -c "
import rattler_build as r
variants = r.VariantConfig.from_yaml('{python: [\'3.12\'], c_stdlib: [sysroot], c_stdlib_version: [\'2.28\']}')
(built,) = r.Stage0Recipe.from_file('$root/packaging/conda/recipe.yaml').render(variants)
print('conda recipe:', built.recipe.package.name, built.recipe.package.version, 'needs', *map(str, built.recipe.requirements.run))
"
