"""Poisson's equation by differences of the tenth order with one-sided closures, by methods for matrices that are not symmetric."""

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st

WAVES = (5.0, 4.0, 3.0)


class Problem:
    """On the unit cube, with values given at the boundary; the solution is a product of sines."""

    def __init__(self, shape, accuracy=10):
        self.shape, d = shape, len(shape)
        at = st.indices(d)
        u, out = st.grid("u", d), st.grid("out", d)
        boundary = at[0] == 0
        for i in at:
            boundary = boundary | (i == 0) | (i == i.extent - 1)
        steps = [1.0 / (n - 1) for n in shape]
        laplace = st.laplacian(u, at, accuracy=accuracy, spacing=steps, closure=True)
        self.stencil = st.assign(out(*at), st.where(boundary, u(*at), -laplace))
        points = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
        self.exact = np.prod([np.sin(w * x + 0.3) for w, x in zip(WAVES, points, strict=False)], axis=0)
        self.inside = np.pad(np.ones([n - 2 for n in shape], bool), 1)
        self.b = np.where(self.inside, sum(w * w for w in WAVES[:d]) * self.exact, self.exact)

    def operator(self, with_adjoint=True):
        product, adjoint = st.compile(self.stencil, self.shape), None
        if with_adjoint:
            transposed = st.compile(self.stencil.transpose(), self.shape)
            adjoint = lambda v: transposed(out=v.reshape(self.shape)).ravel()  # noqa: E731
        return am.Operator(lambda v: product(u=v.reshape(self.shape)).ravel(), rows=self.b.size, adjoint=adjoint)

    def low_order(self):
        inside = self.inside.ravel().astype(float)
        A = am.gallery.poisson(self.shape).to_scipy().tocoo()  # all spacings are equal here
        h = 1.0 / (self.shape[0] - 1)
        kept = (inside[A.row] * inside[A.col] > 0) | (A.row == A.col)
        values = np.where(inside[A.row] > 0, A.data / h**2, 1.0)
        A.data[:] = values
        A.row, A.col, A.data = A.row[kept], A.col[kept], A.data[kept]
        return am.Matrix.from_scipy(A.tocsr())

    def solve(self, method, pc, rtol=1e-12, options=None):
        P = self.low_order()
        x, info = am.solve(
            self.operator(method == "bicg"), self.b.ravel(), P=P, ksp=method, pc=pc, rtol=rtol, options=options
        )
        return np.abs(x - self.exact.ravel()).max(), info


@pytest.mark.parametrize(("accuracy", "sizes"), [(2, (41, 81)), (4, (41, 81)), (6, (41, 81)), (10, (31, 46))])
def test_the_differences_have_their_order(accuracy, sizes):
    """Error of the operator itself, the closures included."""
    errors = []
    for n in sizes:
        p = Problem((n,), accuracy)
        got = p.stencil.interpret(u=p.exact)["out"]
        errors.append(np.abs(got - p.b).max())
    order = np.log(errors[0] / errors[1]) / np.log((sizes[1] - 1) / (sizes[0] - 1))
    assert accuracy - 0.4 < order < accuracy + 1.5, order


@pytest.mark.parametrize(("d", "sizes"), [(1, (20, 30, 40)), (2, (16, 24, 32))])
def test_the_solution_has_order_10(d, sizes):
    problems = [Problem((n,) * d) for n in sizes]
    for method in ("gmres", "bicgstab", "bicg")[: 4 - d]:  # the transposed stencil compiles for long
        errors = [p.solve(method, "lu")[0] for p in problems]
        orders = [np.log(errors[m] / errors[m + 1]) / np.log((sizes[m + 1] - 1) / (sizes[m] - 1)) for m in range(2)]
        assert min(orders) > 10 and errors[-1] < 1e-10, (method, errors, orders)


def test_low_order_multigrid_is_a_preconditioner_in_three_dimensions():
    p = Problem((17,) * 3)
    errors = {}
    for method in ("gmres", "bicgstab"):
        errors[method], info = p.solve(method, "amg", 1e-11, "-mg_levels_ksp_max_it 8")
        assert info.iterations < 150
    assert max(errors.values()) < 1e-6 and max(errors.values()) < 1.01 * min(errors.values())  # of the differences
    second = np.abs(
        am.solve(p.low_order(), second_order_rhs(p), ksp="cg", pc="amg", rtol=1e-11)[0] - p.exact.ravel()
    ).max()
    assert second > 1000 * max(errors.values())


def second_order_rhs(p):
    """With the values at the boundary taken to the right side."""
    full = am.gallery.poisson(p.shape).to_scipy() * (p.shape[0] - 1.0) ** 2
    g = np.where(p.inside, 0.0, p.exact).ravel()
    return np.where(p.inside.ravel(), p.b.ravel() - full @ g, g)


def test_the_transposed_operator_solves_transposed_systems():
    p = Problem((20,))
    A = np.array([p.stencil.interpret(u=e)["out"] for e in np.eye(20)]).T
    op = p.operator()
    y = np.random.default_rng(0).standard_normal(20)
    np.testing.assert_allclose(st.compile(p.stencil.transpose(), 20)(out=y), A.T @ y, atol=1e-12 * np.abs(A).max())
    x = am.Solver(op, P=p.low_order(), ksp="gmres", pc="lu", rtol=1e-12).solve_transpose(y)
    np.testing.assert_allclose(x, np.linalg.solve(A.T, y), rtol=1e-6)
