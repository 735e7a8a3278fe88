"""What benchmarks print, and the README's table: all from the raw runs under bench/results.

python bench/tables.py                # every benchmark in words
python bench/tables.py --readme       # write the README's table anew
python bench/tables.py --real-matrices  # write docs/reference/real-matrices.md anew
"""

import argparse
import json
import re
import statistics
import sys
import textwrap
from pathlib import Path

from direct import table as direct
from gmg import table as gmg
from gpu_table import show as gpu
from high_order import table as high_order
from least_bytes import least_bytes, of_least_bytes
from triangular import table as sptrsv

from asterism.cli.bench_queues import print_async, print_launch
from asterism.cli.bench_weak import print_weak

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"


def busy(r: dict) -> None:
    """Solves beside busy processes, against the fair share."""
    for c in r["cases"]:
        for name, cases in c["solves"].items():
            worst = max(cases, key=lambda b: b["of_fair_share"])
            print(
                f"busy  {c['ranks']} rank(s), {c['threads']} threads, {c['cores']} cores, {name} solve: at most {worst['of_fair_share']:.2f} "
                f"of the fair share, beside {worst['busy']} busy processes{' on one core' if worst['bound'] else ''}"
            )


def waits(r: dict) -> None:
    """Messages and solves on two ranks, beside another build."""
    for name, c in r["cases"].items():
        line = f"waits  {name}: {1e6 * c['median_of_this']:.3f} us"
        if "this_over_other" in c:
            line += f", {1e6 * c['median_of_other']:.3f} us by {r['other']}: {c['this_over_other']:.3f} of it"
        print(line)


def random_solves(r: dict) -> None:
    """Random systems, each answer compared with LAPACK's and with its residual in long double."""
    for c in r["runs"]:
        print(
            f"random solves  {c['solves']:6d} on {c['ranks']} rank(s) beside {c['busy']} busy processes, in {c['seconds']} s: "
            f"{c['wrong']} wrong, {c['converged']} converged, {c['refused']} refused with an error, {c['not_converged']} not converged"
        )
    print(f"               {sum(c['solves'] for c in r['runs'])} in all, {sum(c['wrong'] for c in r['runs'])} wrong")


def robustness(r: dict) -> None:
    """Iterations of each family of multigrid on each problem."""
    names = list(next(iter(r["cases"].values()))["runs"])
    print(f"robustness  iterations of cg (with a wind: gmres) to {r['rtol']:g}; -: not within {r['most_iterations']}")
    for number, name in enumerate(names):
        options = r["options"].get(name)
        print(f"  ({number + 1}) {name}{f': {options}' if options else ''}")
    print(f"  {'':45s}" + "".join(f"{f'({i + 1})':>8s}" for i in range(len(names))))
    for name, c in r["cases"].items():
        cells = [
            "" if not run else "refused" if "refused" in run else str(run["iterations"]) if run["converged"] else "-"
            for run in (c["runs"].get(k) for k in names)
        ]
        print(f"  {name:45s}" + "".join(f"{cell:>8s}" for cell in cells))


def spmv(r: dict) -> None:
    """Products, against the triad and the peers."""
    for name, c in r["cases"].items():
        ours = statistics.median(c["seconds"])
        others = [("SciPy", c["scipy_seconds"]), *c["petsc"].items()]
        print(
            f"spmv  {name:34s} {c['storage']:12s} {c['GB_per_s']:6.1f} GB/s = {c['fraction_of_triad']:.2f} of the triad; "
            + ", ".join(f"{k} {statistics.median(v) / ours:.2f}" for k, v in others)
            + " times as long  (1 rank x 1 thread)"
        )
        if half := c.get("symmetric"):
            t = statistics.median(half["seconds"])
            sbaij = next((statistics.median(v) / t for k, v in c["petsc"].items() if "sbaij" in k), float("nan"))
            print(
                f"      half of it stored: {t / ours:.2f} of that time, {half['bytes'] / half['bytes_of_general']:.2f} of its memory; "
                f"PETSc's sbaij {sbaij:.2f} times as long"
            )


def products(r: dict) -> None:
    """Products of matrices, against the fastest algorithm of each peer."""
    for name, c in r["cases"].items():
        whole, again = (statistics.median(c[k]) for k in ("seconds", "seconds_new_values"))
        print(
            f"products  {name:26s} {1e3 * whole:7.1f} ms, new values {1e3 * again:7.1f} ms; SciPy {statistics.median(c['scipy']) / whole:.2f} "
            "times as long  (1 rank x 1 thread)"
        )
        middle = {k: [statistics.median(run[i] for run in v) for i in range(2)] for k, v in c["petsc"].items()}
        if middle:
            both = [min(middle, key=lambda k, i=i: middle[k][i]) for i in range(2)]
            print(
                f"          {both[0]}: {middle[both[0]][0] / whole:.2f} times as long; with new values {both[1]}: "
                f"{middle[both[1]][1] / again:.2f} times as long"
            )


def by_default(r: dict) -> None:
    """Real matrices by default settings, against SuperLU."""
    for rtol in r["rtols"]:
        rows = [(name, *_beside_superlu(c, rtol)) for name, c in r["cases"].items()]
        solved = [ratio for _, solved, ratio in rows if solved]
        late = [f"{name} {ratio:.1f}" for name, good, ratio in rows if good and ratio > 10]
        failed = [name for name, good, _ in rows if not good]
        print(
            f"by default  rtol {rtol:g}: {len(solved)} of {len(rows)} real matrices; {statistics.median(solved):.2f} of SuperLU's time in the "
            f"median, {max(solved):.1f} at most  (1 rank x 1 thread)"
        )
        if late or failed:
            print(
                f"            more than 10 times: {', '.join(late) or 'none'}; not solved: {', '.join(failed) or 'none'}"
            )


def _beside_superlu(case: dict, rtol: float) -> tuple[bool, float]:
    """Whether it was solved, and in how many of SuperLU's times: the best of the rounds of each."""
    ours, peer = case[f"rtol {rtol:g}"], case["superlu"]["seconds"]
    good = ours["reason"].startswith("CONVERGED") and ours["residual"] <= 1.01 * rtol
    return good, min(ours["seconds"]) / min(peer) if peer else float("nan")


def real_matrices() -> str:
    """Return docs/reference/real-matrices.md."""
    r = json.loads((HERE / "results" / "by_default.json").read_text())
    rtol = r["rtols"][-1]
    lines = []
    for name, c in r["cases"].items():
        ours, (good, ratio) = c[f"rtol {rtol:g}"], _beside_superlu(c, rtol)
        what = f"{ours['solver']} | {ours['iterations']} | {ours['residual']:.1e}" if "solver" in ours else "| |"
        lines.append(
            f"| {name} | {c['rows']} | {c['entries']} | {what} | {ours['reason'] if not good else 'yes'} | {1e3 * min(ours['seconds']):.1f} | "
            f"{1e3 * min(c['superlu']['seconds'], default=float('nan')):.1f} | {ratio:.1f} |"
        )
    count = sum(_beside_superlu(c, rtol)[0] for c in r["cases"].values())
    rounds = max(len(c["superlu"]["seconds"]) for c in r["cases"].values())
    timed = "those of one run" if rounds == 1 else f"the best of {rounds} interleaved rounds"
    return (
        "# Real matrices\n\n"
        f"`am.solve(A, b, rtol={rtol:g})` and nothing else: the library chooses. The system is b = A x* with\n"
        "x*_i = cos(i + 1), on one process with one thread. SciPy computes the residual ||b - A x|| / ||b|| from the answer.\n"
        f"Times are {timed}, set-up included, on {r['cores']} cores of an\n"
        f"{r['cpu']}, {r['date'][:10]}.\n"
        "SuperLU is SciPy's `splu` with its default order. `make table` measures and writes this page. The matrices are\n"
        "those of the SuiteSparse collection and of the libraries named in the data's README.\n\n"
        f"Solved: {count} of {len(lines)}.\n\n"
        "| matrix | rows | entries | solver at the end | iterations | residual | solved | ms | SuperLU ms | ratio |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


def cg_jacobi(r: dict) -> None:
    """One iteration, against the least that must be moved."""
    print(
        f"cg + jacobi, one iteration: {1e3 * statistics.median(r['seconds_per_iteration']):.1f} ms, {r['over_limit']:.2f} of (A once + 12 n values) / triad; SciPy {1e3 * statistics.median(r['scipy']):.1f} ms  (1 rank x 1 thread)"
    )


def read(r: dict) -> None:
    """A Matrix Market file."""
    best = statistics.median(r["seconds"]["asterism .mtx, 2 rank(s)"])
    for name, v in r["seconds"].items():
        t = statistics.median(v)
        print(
            f"read {r['bytes'] / 1e6:.0f} MB of .mtx ({r['entries']} entries)  {name:32s} {t:.3f} s = {r['bytes'] / t / 1e6:.0f} MB/s; "
            f"ours (.mtx, 2 ranks) takes {best / t:.2f} of it"
        )


def assembly(r: dict) -> None:
    """The pattern once, then values; and entries inserted without a pattern."""
    for ranks in (1, 2):
        ours = {k: [t for x in r["runs"][f"asterism, {ranks} rank(s)"] for t in x[k]] for k in ("setup", "values")}
        for name, runs in r["runs"].items():
            if f"{ranks} rank" not in name:
                continue
            t = {k: statistics.median([s for x in runs for s in x[k]]) for k in ours}
            ratio = {k: statistics.median(ours[k]) / t[k] for k in ours}
            print(
                f"assembly of {r['entries'] / 1e6:.1f} M entries  {name:24s} pattern {t['setup']:.3f} s, values {1e3 * t['values']:.1f} ms; "
                f"ours takes {ratio['setup']:.2f} and {ratio['values']:.2f} of it  (1 thread a rank)"
            )
    for ranks in (1, 2):
        name = f"asterism, {ranks} rank(s)"
        ours = {
            k: statistics.median([s for x in r["insertion"][name] for s in x["seconds"][k]])
            for k in ("stack", "layers", "one", "again")
        }
        print(
            f"the same inserted without a pattern  {name}  in one call {ours['stack']:.3f} s, by layers {ours['layers']:.3f} s, an element a call "
            f"{ours['one']:.3f} s, again {ours['again']:.3f} s"
        )
        for peer, runs in r["insertion"].items():
            if peer != name and f"{ranks} rank" in peer:
                t = {k: statistics.median([s for x in runs for s in x[k]]) for k in ("seconds", "again")}
                print(
                    f"{'':37s}{peer}  an element a call {t['seconds']:.3f} s, again {t['again']:.3f} s; ours takes "
                    f"{ours['stack'] / t['seconds']:.2f} and {ours['again'] / t['again']:.2f} of it"
                )
    t = {k: statistics.median(v) for k, v in r["once"].items()}
    print(", ".join(f"{k} {s:.3f} s" for k, s in t.items()) + "  (1 rank x 1 thread)")


def scipy(r: dict) -> None:
    """The same calls of SciPy."""
    for name, c in r["calls"].items():
        t = {k: statistics.median(c[k]) for k in ("asterism", "scipy")}
        print(
            f"{r['n']}^3 {name:26s} asterism.scipy {t['asterism']:.2f} s, SciPy {t['scipy']:.2f} s: {c['ratio']:.2f} of it; residuals "
            f"{c['residuals']['asterism']:.1e}, {c['residuals']['scipy']:.1e}  (1 thread)"
        )


def queues(r: dict) -> None:
    """Empty tasks, and iterations by a worker's queue."""
    print_launch(r["launch"])
    print_async(r["async"])
    for c in r["scipy"]:
        print(
            f"{c['case']} {c['nonzeros']} nonzeros, SciPy's cg {1e6 * statistics.median(c['seconds_per_iteration']):.1f} us an iteration"
        )


def forest(r: dict) -> None:
    """Messages, set-ups and ghost exchanges of star forests."""
    theirs = {p["bytes"]: p for p in r["petsc"]}
    us = {
        (row["bytes"], k): 1e6 * statistics.median(v)
        for row in r["pingpong"]
        for k, v in row.items()
        if isinstance(v, list)
    }
    for row in r["pingpong"]:
        b = row["bytes"]
        line = f"forest, one way, {b:>8d} B: raw MPI {us[b, 'raw_mpi']:.2f} us"
        for k in row:
            case = k.partition(" ")[2].removeprefix("shared ")
            if not case:
                continue
            line += f"; {k} {us[b, k]:.2f}"
            if b in theirs:
                other = theirs[b][case.removesuffix(" sum")]["sum" if case.endswith(" sum") else "replace"]
                line += f" ({us[b, k] / (1e6 * statistics.median(other)):.2f} of PETSc)"
        print(line)
    for row in r["unpack"]:
        print(
            f"unpack, {row['case']}{row['bytes']} B: a sum takes {row['sum_over_replace']:.2f} times as long as a replace"
        )
    for row in r["transports"]:
        best = 1e6 * statistics.median(row[row["best"]])
        print(
            f"{row['case']}{row['bytes']} B: best is {row['best']}, {best:.2f} us; auto takes {row['auto_over_best']:.2f} of that"
        )
    for row in r["sfsetup"]:
        line = f"forest set-up, {row['bytes'] // 8} leaves:"
        for k in ("contiguous", "permuted"):
            line += f" {k} {1e6 * statistics.median(row[k]):.1f} us"
            if row["bytes"] in theirs:
                line += (
                    f" ({statistics.median(row[k]) / statistics.median(theirs[row['bytes']][k]['setup']):.2f} of PETSc)"
                )
        print(line)
    for row in r["halo"]:
        times = ", ".join(f"{k} {1e6 * statistics.median(v):.1f} us" for k, v in row.items() if isinstance(v, list))
        print(
            f"halo {row['case']}{times}; raw MPI's best takes {row['raw_over_best']:.2f} times as long as our best; overlapped "
            + ", ".join(f"{k} {v:.2f}" for k, v in row["overlap"].items())
        )


def on_off(r: dict) -> None:
    """What something costs that can be switched off."""
    for n, c in r["cases"].items():
        print(f"{r['bench']} on / off, {n}^3: {c['ratio']:.4f}")


def amg(r: dict) -> None:
    """Set-up and solve, beside the peers."""

    def median(run: str, what: str, time: int) -> float:
        return statistics.median([x[what][time] for x in r["runs"][run]])

    one, threads, two = (f"asterism, {x}" for x in ("1 rank x 1 thread", "1 rank x 2 threads", "2 ranks x 1 thread"))
    for time, when in ((0, "first"), (1, "again")):
        for k, v in r["runs"].items():
            setup, solve = median(k, "setup", time), median(k, "solve", time)
            print(
                f"amg {r['n']}^3 {when}  {k:32s} set-up {setup:.2f} + solve {solve:.2f} s, {v[0]['iterations']} iterations"
            )
            bases = () if k.startswith("asterism") else (threads, two) if "2 thread" in k else (one,)
            for base in (b for b in bases if b in r["runs"]):
                ours = median(base, "setup", time)
                share = (ours + median(base, "solve", time)) / (setup + solve)
                print(f"{'':12s}{base} takes {share:.2f} of it, in set-up {ours / setup:.2f}")
        said = of_least_bytes(r["levels"], r["runs"][one], time, r["triad_GB_per_s_1_thread"])
        print(f"amg {r['n']}^3 {when}  {one}: {said}")
        speedup = median(one, "setup", time) / median(two, "setup", time)
        print(f"amg {r['n']}^3 {when}  set-up on 2 ranks {speedup:.2f} times as fast")
    for k, v in r["runs"].items():
        if peaks := [p for x in v for p in (x.get("peak_bytes"), sum(x.get("peak_bytes_of_ranks", []))) if p]:
            print(f"amg {r['n']}^3  {k:32s} peak memory of all ranks {statistics.median(peaks) / 2**30:.2f} GiB")


def multigrid(r: dict) -> None:
    """Each matrix beside the peers: sums of set-up and solve, medians."""

    def seconds(runs: list[dict], what: str) -> float:
        return statistics.median([x[what][0] for x in runs])

    for name, runs in r["cases"].items():
        failed = {k for k, v in runs.items() if any("failure" in x for x in v)}
        total = {k: seconds(v, "setup") + seconds(v, "solve") for k, v in runs.items() if k not in failed}
        for k, v in runs.items():
            if k in failed:
                print(f"multigrid {name:12s} {k:20s} failed: {next(x['failure'] for x in v if 'failure' in x)}")
                continue
            mine = total.get("asterism, 1 x 1" if k == "pyamg" or "1 thread" in k else "asterism, 1 x 2")
            share = "" if k.startswith("asterism") or mine is None else f"; ours takes {mine / total[k]:.2f} of it"
            print(
                f"multigrid {name:12s} {k:20s} set-up {seconds(v, 'setup'):.3f} + solve {seconds(v, 'solve'):.3f} s, "
                f"{v[0]['iterations']} iterations{share}"
            )
            if name in ("variable", "jumps") and k == "asterism, 1 x 1":  # the smoother is one step
                print(f"{'':23s}{of_least_bytes(v[0]['view'], v, 0, r['triad_GB_per_s_1_thread'])}")


def blocks(r: dict) -> None:
    """Several right-hand sides at once beside one."""
    for name, c in r["cases"].items():
        one = 1e3 * statistics.median(c["seconds_per_iteration"]["1"])
        ratios = ", ".join(f"{k}: {v:.2f}" for k, v in c["ratios"].items() if k != "1")
        line = f"an iteration {one:.1f} ms; of more right-hand sides, times as much: {ratios}"
        if name in ("constant, 1 thread(s)", "variable, 1 thread(s)"):  # the smoother is one step
            limit = 1e-6 * least_bytes(c["levels"], 8) / statistics.median(r["triad_GB_per_s_1_thread"])
            line += f", {limit / one:.2f} at the speed of the triad"
        print(f"blocks {name:26s} {line}")


def precisions(r: dict) -> None:
    for name, runs in r["cases"].items():
        print(name)
        for p, run in runs.items():
            seconds = run["seconds_per_iteration"]
            time = f", {1e3 * statistics.median(seconds):.1f} ms each" if seconds else ""
            end = "" if run["converged"] else " (not converged)"
            print(f"  {p:20} {run['iterations']} iterations{end}{time}, {sum(run['bytes_of_levels']) / 1e6:.1f} MB")


def stencils(r: dict) -> None:
    print(f"triad {r['triad_bytes_per_s'] / 1e9:.1f} GB/s; the limit reads and writes 16 bytes a point at that rate")
    for k in r["kernels"]:
        print(f"{k['points']} points: first use {k['first_use_s']:.2f} s, from the cache {1e3 * k['again_s']:.1f} ms")
        for run in k["runs"]:
            rate = f"{run['points_per_s'] / 1e9:.3f} G points/s, {run['of_limit']:.2f} of the limit"
            print(f"  {run['n']}^3: {rate}, {run['over_tiled']:.2f} times tiled loops")


SHOW = {
    "precisions": precisions,
    "stencils": stencils,
    "direct": direct,
    "gmg": gmg,
    "gpu": gpu,
    "sptrsv": sptrsv,
    "multigrid": multigrid,
    "blocks": blocks,
    "busy": busy,
    "waits": waits,
    "by_default": by_default,
    "spmv": spmv,
    "cg_jacobi": cg_jacobi,
    "read": read,
    "assembly": assembly,
    "scipy": scipy,
    "queues": queues,
    "forest": forest,
    "profiling": on_off,
    "reproducible": on_off,
    "amg": amg,
    "products": products,
    "random_solves": random_solves,
    "weak": print_weak,
    "robustness": robustness,
    "high_order": high_order,
}


def show(r: dict) -> None:
    """Print a benchmark's ratios."""
    SHOW[r["bench"]](r)
    for name, what in r.get("peers", {}).items():
        print(f"{name}: {what}")


def readme_table() -> str:
    """Return the README's comparison: multigrid, set-up and solve in a fresh process."""
    r = json.loads((HERE / "results" / "amg.json").read_text())

    def median(run: str, what: str) -> float:
        return statistics.median([x[what][0] for x in r["runs"][run]])

    def row(run: str, name: str, base: str) -> str:
        setup, solve = median(run, "setup"), median(run, "solve")
        ratio = (median(base, "setup") + median(base, "solve")) / (setup + solve)
        share = "" if run.startswith("asterism") else f"{ratio:.2f} of it"
        return f"| {name} | {setup:.2f} | {solve:.2f} | {r['runs'][run][0]['iterations']} | {share} |"

    one, two = "asterism, 1 rank x 1 thread", "asterism, 2 ranks x 1 thread"
    lines = [
        f"3-D Poisson {r['n']}^3, cg + amg, rtol 1e-8 on the true residual, {r['cores']} cores of an {r['cpu']}, {r['date'][:10]}.",
        "Medians of interleaved runs in fresh processes, one thread each unless said, from `bench/results/amg.json`.",
        "",
        "| | set-up s | solve s | iterations | ours takes in all |",
        "|---|---|---|---|---|",
    ]
    for run in sorted(r["runs"], key=lambda k: (k != one, "2 ranks" in k or "2 thread" in k, k != two)):
        base = two if "2 ranks" in run or "2 thread" in run else one
        name = run.replace(", 32-bit indices, preconditioner in", ", multigrid in")
        for long, short in (
            (", 1 rank x 2 thread(s)", ", 2 threads"),
            (", 1 rank x 2 threads", ", 2 threads"),
            (" x 1 thread(s)", ""),
            (" x 1 thread", ""),
            (", 1 rank", ""),
        ):
            name = name.replace(long, short)
        lines.append(row(run, f"**{name}**" if run in (one, two) else name, base))
    peers = [f"{name}, with 32-bit indices: {what}." for name, what in r.get("peers", {}).items()]
    lines += ["", *(textwrap.fill(p, 118, break_long_words=False, break_on_hyphens=False) for p in peers)]
    return "\n".join(lines).rstrip() + "\n"


TABLE = re.compile(r"(<!-- bench/tables.py --readme -->\n).*?(<!-- end -->\n)", re.S)


def main() -> int:
    """Print, or write the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", action="store_true", help="write the README's table anew")
    parser.add_argument("--real-matrices", action="store_true", help="write docs/reference/real-matrices.md anew")
    args = parser.parse_args()
    if args.real_matrices:
        (HERE.parent / "docs" / "reference" / "real-matrices.md").write_text(real_matrices())
        return 0
    if args.readme:
        README.write_text(TABLE.sub(lambda m: m[1] + readme_table() + m[2], README.read_text()))
        return 0
    for file in sorted((HERE / "results").glob("*.json")):
        show(json.loads(file.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
