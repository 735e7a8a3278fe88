"""Draws docs/images/asynchronous_cg.svg from a run on this machine."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import asterism as am

A = am.gallery.poisson((150, 150))
b = np.ones(A.local_shape[0])
figure, axes = plt.subplots(2, 1, figsize=(10, 4.2), sharex=True, layout="constrained")
for ax, title, option in zip(
    axes, ("synchronous", "asynchronous"), ("-queue thread", "-ksp_asynchronous"), strict=True
):
    solver = am.Solver(A, f"-ksp_type cg -pc_type jacobi -ksp_rtol 1e-8 {option}")
    solver.solve(b)
    with am.Trace() as trace:
        solver.solve(b)
    trace.plot(ax, start=4e-3, seconds=1e-3)
    assert solver.info is not None
    ax.set_title(
        f"{title}: {solver.info.iterations} iterations, {solver.info.host_waits} waits", loc="left", fontsize=10
    )
axes[0].set_xlabel("")
axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncol=8, fontsize=8, frameon=False)
figure.savefig(Path(__file__).parent / "images" / "asynchronous_cg.svg")
