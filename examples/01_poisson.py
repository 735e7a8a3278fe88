"""A first solve: the 7-point Laplacian, conjugate gradients, algebraic multigrid.

Run: python examples/01_poisson.py
"""

import numpy as np

import asterism as am

A = am.gallery.poisson((40, 40, 40))
b = np.ones(A.shape[0])
x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8)
print(info.reason, info.iterations, "iterations, residual", info.true_residual / info.rhs_norm)
assert 8 <= info.iterations <= 20
assert np.linalg.norm(A @ x - b) <= 1e-8 * np.linalg.norm(b)
