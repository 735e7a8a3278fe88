"""Entries of finite elements: assembled by a plan, inserted without one, or given once; bench/run.py runs it."""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from programs import ASSEMBLE_ON_RANKS, INSERT_ON_RANKS, json_line, mpiexec, petsc

import asterism as am
from asterism.cli.bench_assembly import trilinear_entries


def assembly(rounds: int, triad: Callable[[], float]) -> dict:
    """Trilinear elements on 64^3 cells, 16.8 million entries, beside PETSc and SciPy.

    runs: the pattern once, then values, beside PETSc's COO. insertion: entries with their values, beside PETSc's MatSetValues without
    preallocation; a stack of all elements, layers of them, one by one, and the same places again. once: entries as arrays.
    """
    e = 64
    kinds = (
        ("runs", ASSEMBLE_ON_RANKS, "5", petsc("petsc_coo.c")),
        ("insertion", INSERT_ON_RANKS, "3", petsc("petsc_insert.c")),
    )
    out: dict = {kind[0]: {} for kind in kinds}
    streams = []
    for _ in range(rounds):
        streams.append(triad())
        for ranks in (1, 2):
            for kind, script, repeats, peer in kinds:
                ours = json_line([*mpiexec(ranks), sys.executable, "-c", script, str(e), repeats])
                out[kind].setdefault(f"asterism, {ranks} rank(s)", []).append(ours)
                if peer:
                    theirs = beside(peer, ranks, e, ours)
                    out[kind].setdefault(f"{theirs['peer']}, {ranks} rank(s)", []).append(theirs)
    nodes, i, j = trilinear_entries(e)
    v = 1.0 + np.arange(len(i)) % 7
    once: dict[str, list[float]] = {"asterism Matrix.coo": [], "scipy coo_array.tocsr": []}
    for _ in range(rounds):
        for name, f in (
            ("asterism Matrix.coo", lambda: am.Matrix.coo((nodes, nodes), i, j, v)),
            ("scipy coo_array.tocsr", lambda: sp.coo_array((v, (i, j)), shape=(nodes, nodes)).tocsr()),
        ):
            t0 = time.perf_counter()
            f()
            once[name].append(time.perf_counter() - t0)
    return {"bench": "assembly", "cells": e, "entries": len(i), **out, "once": once, "triad": streams}


def beside(peer: Path, ranks: int, e: int, ours: dict) -> dict:
    """Return PETSc's run; an error if its matrix is another one."""
    theirs = json_line([shutil.which("mpiexec.openmpi") or "mpiexec", "-n", str(ranks), str(peer), "-e", str(e)])
    if theirs["nnz"] != ours["nnz"] or abs(theirs["norm"] - ours["norm"]) > 1e-9 * ours["norm"]:
        raise RuntimeError(f"the matrices differ: {theirs['nnz']}, {theirs['norm']} and {ours['nnz']}, {ours['norm']}")
    return theirs
