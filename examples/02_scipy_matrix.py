"""A SciPy matrix, an unsymmetric problem, options as PETSc writes them.

Run: python examples/02_scipy_matrix.py
"""

import numpy as np
import scipy.sparse as sp

import asterism as am

n = 60
d = sp.diags_array([-1.2 * np.ones(n - 1), 2.0 * np.ones(n), -0.8 * np.ones(n - 1)], offsets=[-1, 0, 1])
S = (sp.kron(d, sp.eye_array(n)) + sp.kron(sp.eye_array(n), d)).tocsr()
solver = am.Solver(S, "-ksp_type gmres -ksp_gmres_restart 40 -pc_type ilu -ksp_rtol 1e-10")
x = solver.solve(np.ones(n * n))
assert solver.info is not None
print(solver.info.iterations, "iterations")
print(solver.explain())
assert np.linalg.norm(S @ x - 1) <= 1e-10 * n
assert solver.info.iterations <= 60
