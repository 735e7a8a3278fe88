"""Which kernels of the library have a form in a plug-in for GPUs: python scripts/gpu_forms.py build/.../libasterism_cuda.so"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# kernels that a plug-in must have in every instantiation; the others run on the host
REQUIRED = {
    *("fill", "scale", "axpy", "axpby", "multiply", "multiply_add", "chebyshev_step", "convert", "hashed", "gather"),
    *("sum_entries", "sum_received_entries", "add_parts", "set_signal", "await_signal"),
    "take_in",
    *("dot", "update_and_norm2", "multiply_and_dot", "multi_dot", "multi_axpy"),
    *("mixed_aypx", "mixed_update_and_norm2"),
    *("part_dot", "part_axpy"),
    *(
        "star",
        "interpolate",
        "restrict_to",
        "interpolate_points",
        "restrict_points",
        "clear_runs",
        "csr_product",
        "sell_product",
        "row_pattern_product",
        "bcsr_product",
        "dense_product",
        "level_sweep",
        "level_relax",
        "gauss_seidel",
        "store",
        "nothing",
        "check_norms",
        "check_scalar",
        "copy_verdict",
    ),
}
KERNEL = re.compile(r"^(?:void )?asterism::[\w:]*kernel::(\w+)(?:<[^()]*>)?\(asterism::device::Executor&")


def kernels(path: Path) -> dict[str, set[str]]:
    """Mangled names of the exported kernels, by kernel."""
    names = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
    mangled = [line.split()[-1] for line in names.splitlines() if line.split()[-2] in "TW"]
    plain = subprocess.run(
        ["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    out: dict[str, set[str]] = defaultdict(set)
    for m, p in zip(mangled, plain, strict=True):
        found = KERNEL.match(p)
        # neither a template over one, nor a function within one
        if found and found[0].count("<") == found[0].count(">") and "{lambda" not in p:
            out[found[1]].add(m)
    return out


def restricted(path: Path) -> set[str]:
    """Kernels of lambdas that capture a pointer with __restrict__, which nvcc registers under another type than is launched."""
    names = subprocess.run(["nm", "-C", str(path)], capture_output=True, text=True, check=True).stdout
    return {n[:200] for n in names.splitlines() if "::gpu::" in n and " restrict" in n}


def main() -> None:
    from asterism import _core

    library = kernels(Path(_core.__file__).parent / "lib" / "libasterism.so")
    plugin = kernels(Path(sys.argv[1]))
    missing = {k: library[k] - plugin[k] for k in REQUIRED if not library[k] or library[k] - plugin[k]}
    count = sum(len(library[k] & plugin[k]) for k in library)
    print(f"{Path(sys.argv[1]).name}: {count} of {sum(map(len, library.values()))} kernels of the library have a form")
    print("  on the host:", ", ".join(sorted(k for k in library if not plugin[k])) or "none")
    if bad := restricted(Path(sys.argv[1])):
        sys.exit(f"{len(bad)} kernels would not start: a lambda captures a pointer with __restrict__")
    if missing:
        sys.exit("missing: " + "; ".join(f"{k}: {len(v) or 'not found in the library'}" for k, v in missing.items()))


if __name__ == "__main__":
    main()
