"""How many steps a smoother takes is one thing, and which smoother another: to give the first leaves the second to the library."""

import numpy as np
import pytest

import asterism as am


def smoother(solver):
    return next(line.split(", ")[-1] for line in solver.view().splitlines() if line.split()[:1] == ["0"])


def solved(A, options, **more):
    s = am.Solver(A, options, rtol=1e-8, **more)
    s.solve(np.ones(A.local_shape[0]))
    return s


def test_amg():
    A = am.gallery.elasticity((6, 6, 6))
    open_ = solved(A, "", ksp="cg", pc="amg")
    two = solved(A, "-mg_levels_ksp_max_it 2", ksp="cg", pc="amg")
    assert smoother(open_) == smoother(two) == "chebyshev (opt_fourth) x 2 with jacobi"
    assert two.info.iterations == open_.info.iterations
    four = solved(A, "-mg_levels_ksp_max_it 4", ksp="cg", pc="amg")
    assert smoother(four).startswith("chebyshev (opt_fourth) x 4") and four.info.iterations < two.info.iterations
    assert smoother(solved(A, "-mg_levels_ksp_max_it 9", ksp="cg", pc="amg")).startswith("chebyshev (fourth) x 9")
    up = solved(A, "-mg_levels_up_ksp_max_it 2", ksp="cg", pc="amg")
    assert smoother(up) == smoother(two) and up.info.iterations == two.info.iterations
    other = solved(A, "-mg_levels_up_ksp_max_it 1", ksp="gmres", pc="amg")
    assert "chebyshev (opt_fourth) x 2 before, 1 after" in other.view()
    # near an M-matrix it is SPAI-0
    P = am.gallery.poisson((40, 40))
    assert smoother(solved(P, "-mg_levels_ksp_max_it 3", ksp="cg", pc="amg")) == "richardson x 3 with spai0"


def test_gmg():
    i, j = am.stencil.indices(2)
    u, out, h = am.stencil.grid("u", 2), am.stencil.grid("out", 2), am.stencil.constant("h")
    near = u(i + 1, j) + u(i - 1, j) + u(i, j + 1) + u(i, j - 1)
    L = am.stencil.operator(am.stencil.assign(out(i, j), (4 * u(i, j) - near) / (h * h)), (63, 63), h=1 / 64)
    b = np.ones((63, 63))
    iterations = {}
    for options in ("", "-mg_levels_up_ksp_max_it 2", "-mg_levels_ksp_max_it 2", "-mg_levels_ksp_max_it 3"):
        s = am.Solver(L, options, ksp="cg", pc="gmg", rtol=1e-8)
        s.solve(b)
        iterations[options] = s.info.iterations
        assert "chebyshev" in s.view()
    assert iterations[""] == iterations["-mg_levels_up_ksp_max_it 2"] == iterations["-mg_levels_ksp_max_it 2"]
    assert iterations["-mg_levels_ksp_max_it 3"] <= iterations[""]
    told = am.Solver(L, "-mg_levels_ksp_type auto -mg_levels_ksp_max_it 2", ksp="cg", pc="gmg", rtol=1e-8)
    told.solve(b)
    assert told.info.iterations == iterations[""]
    with pytest.raises(am.OptionError, match="equal steps before and after"):
        am.Solver(L, "-mg_levels_up_ksp_max_it 1", ksp="cg", pc="gmg")
    unequal = am.Solver(L, "-mg_levels_ksp_type chebyshev -mg_levels_up_ksp_max_it 1", ksp="gmres", pc="gmg")
    assert "x 2 before, 1 after" in unequal.view()
