"""The README's demo: two systems, a verified answer each, a report and a picture."""

import sys
import time
from pathlib import Path

import numpy as np

import asterism as am
from asterism.report import collect, summary, write_html

started = time.perf_counter()

print("1. Linear elasticity, a clamped block: 3 unknowns a node, rigid-body modes attached\n")
A = am.gallery.elasticity((32, 32, 32))
assert A.shape[0] >= 100_000
b = np.zeros(A.shape[0])
b[2::3] = -1e-3  # gravity
solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
x = solver.solve(b)
assert solver.info is not None and solver.info.converged
assert np.linalg.norm(A @ x - b) <= 1e-8 * np.linalg.norm(b)
findings = collect(f"elasticity, {A.shape[0]} unknowns", solver, solver.info)
print(summary(findings))

print("\n2. A real matrix: the elastic bar of examples/data\n")
folder = Path(__file__).parent / "data"
K, nodes = am.read_matrix(folder / "bar.mtx.gz"), am.read_vector(folder / "bar_coords.mtx.gz")
free = nodes[: K.shape[0] // 3]
y, info = am.solve(K, np.ones(K.shape[0]), ksp="cg", pc="amg", rtol=1e-10, coordinates=free)
print(f"   {K.shape[0]} unknowns: {info.reason} after {info.iterations} iterations")

report = Path("report.html").resolve()
write_html(report, findings)
picture = Path("report.svg").resolve()
page = report.read_text()
picture.write_text(page[page.index("<svg") : page.index("</svg>") + 6])
print(f"\nreport:  {report}\npicture: {picture}\n{time.perf_counter() - started:.1f} s")
sys.exit(0)
