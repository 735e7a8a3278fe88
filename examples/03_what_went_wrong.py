"""A solve that cannot work says why and what to try.

Run: python examples/03_what_went_wrong.py
"""

import numpy as np
import scipy.sparse as sp

import asterism as am

shifted = (am.gallery.poisson((20, 20)).to_scipy() - 3.0 * sp.eye_array(400)).tocsr()
try:
    am.solve(shifted, np.ones(400), ksp="cg", pc="none")
except am.ConvergenceError as error:
    print(error)
    assert error.info.reason == "DIVERGED_INDEFINITE_MAT"
x, info = am.solve(shifted, np.ones(400), ksp="minres", pc="none", rtol=1e-8)
print("minres:", info.reason, info.iterations)
assert info.converged
