"""A method of one's own: conjugate gradients in Python, submitted to a queue, that never waits.

Each operation returns at once with a vector or a scalar that the queue still computes. The norms are read at the end; the answer has
the same bits as with every operation done at once.
"""

import time

import numpy as np

import asterism as am


def cg(A: am.Matrix, b: am.Vector, iterations: int) -> tuple[am.Vector, list[am.Scalar]]:
    """Hestenes and Stiefel (1952), without a test for convergence."""
    x, r = b.like(fill=0.0), b.copy()
    p, rho = r.copy(), r.dot(r)
    norms = [rho.sqrt()]
    for _ in range(iterations):
        q = A @ p
        alpha = rho / p.dot(q)
        new = x.update_and_norm2(alpha, p, q, r).stored(b.queue)
        p.aypx(new / rho, r)
        rho = new
        norms.append(rho.sqrt())
    return x, norms


A = am.gallery.poisson((150, 150))
rhs = np.ones(A.local_shape[0])
answers = {}
for kind in ("inline", "thread"):
    queue = am.Queue(kind)
    start = time.perf_counter()
    x, norms = cg(A, am.Vector.wrap(A, rhs, queue), 200)
    submitted = time.perf_counter() - start
    waits = sum(queue.waits.values())
    answers[kind] = x.numpy()
    done = time.perf_counter() - start
    print(f"{kind:7s} submitted in {1e3 * submitted:5.1f} ms with {waits} waits, done after {1e3 * done:5.1f} ms")
print(f"||r|| from {float(norms[0]):.1f} to {float(norms[-1]):.1e}")

assert np.array_equal(answers["inline"], answers["thread"])
assert float(norms[-1]) < 1e-3 * float(norms[0])
assert np.allclose(np.linalg.norm(rhs - A @ answers["thread"]), float(norms[-1]), rtol=1e-6)
