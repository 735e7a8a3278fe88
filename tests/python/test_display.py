"""How things show themselves: repr, notebooks, completion, help."""

import ctypes
import inspect
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import asterism as am


def things():
    A = am.gallery.elasticity((4, 4, 4))
    s = am.Solver(A, ksp="cg", pc="amg")
    s.solve(np.ones((A.shape[0], 2)))
    q = am.Queue()
    sf = am.StarForest(None, 2, None, [[0, 0], [0, 1]])
    from asterism.report import collect

    with am.Trace() as trace:
        A @ np.ones(A.shape[0])
    return {
        "Advice": am.advise(A, budget=5),
        "Assembly": am.Assembly((2, 2), [0, 1], [0, 1]),
        "Builder": am.Builder((2, 2)),
        "Channels": am.Channels(None, []),
        "CommReport": am.comm_report(),
        "Event": q.record(),
        "Kernel": am.Kernel("shown", ["read float64"], ctypes.CFUNCTYPE(None)(lambda: None)),
        "LeastSquaresInfo": am.least_squares(A, np.ones(A.shape[0]), maxiter=2)[1],
        "Matrix": A,
        "Operator": am.Operator(lambda x: x, 5),
        "ProductPlan": am.ProductPlan(A, A),
        "Queue": q,
        "QueuedForest": sf.on(q),
        "Redistribution": am.Redistribution(A, np.zeros(A.shape[0], int)),
        "Factors": am.factorized(A),
        "TakenFactors": am.factorized(splu(A.to_scipy().tocsc())),
        "Scalar": am.Scalar(2.0),
        "SolveInfo": s.info,
        "Solver": s,
        "StarForest": sf,
        "Submatrix": am.Submatrix(A, [1, 2], [2, 1]),
        "Trace": trace,
        "Vector": am.Vector(A, q, fill=1.0),
        "VectorAssembly": am.VectorAssembly(3, [0, 1]),
        "grid": am.grid.Grid((4, 4)),
        "report": collect("a test", s, s.info),
        "transpose": A.T,
        "flight": sf.bcast_begin(np.zeros(2), np.zeros(2)),
    }


def test_everything_has_a_short_repr():
    found = things()
    flight = found.pop("flight")
    shown = {name: repr(thing) for name, thing in found.items()} | {"flight": repr(flight)}
    flight.end()
    public = {n for n in am.__all__ if inspect.isclass(getattr(am, n)) and not issubclass(getattr(am, n), Exception)}
    assert public <= set(shown)
    for name, text in shown.items():
        assert " object at 0x" not in text and "\n" not in text and len(text) < 200, (name, text)
    assert "CONVERGED_RTOL" in shown["SolveInfo"] and "the worst of 2 columns" in shown["SolveInfo"]
    assert "cg + amg" in shown["Solver"] and f"{found['Matrix'].shape[0]} x" in shown["Solver"]


def test_tables_for_notebooks():
    found = things()
    found.pop("flight").end()
    for name, words in {
        "SolveInfo": ("CONVERGED_RTOL", "relative residual", "set-up"),
        "Solver": ("-pc_type", "amg", "call", "last solve"),
        "Matrix": ("300 x 300", "6 vectors", "float64", "block size"),
    }.items():
        page = found[name]._repr_html_()
        assert page.count("<table>") == page.count("</table>") >= 1, page
        assert all(word in page for word in words), page
    broken = found["Solver"]
    with pytest.raises(am.AsterismError):
        broken.update(am.Matrix.from_scipy(sp.csr_array(([np.nan], ([0], [0])), shape=(300, 300))))
    assert "set-up failed" in repr(broken) and "set-up failed" in broken._repr_html_()


def test_names_of_the_package_are_the_public_ones():
    names = set(dir(am))
    assert names == {*am.__all__, "__version__", "pyamg", "report", "scipy"}
    for name in names:
        assert getattr(am, name) is not None
    errors = {n for n, c in vars(am.errors).items() if inspect.isclass(c) and issubclass(c, am.AsterismError)}
    assert errors <= names
    code = "import asterism as am, sys; assert 'asterism.pyamg' not in sys.modules; am.pyamg.smoothed_aggregation_solver, am.scipy.cg"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'sove'"):
        am.sove  # noqa: B018


def test_help_shows_all_arguments():
    said = {"ksp", "pc", "rtol", "atol", "maxiter", "restart", "block_size", "coordinates", "near_null_space", "P", "M"}
    for call, more in (
        (am.solve, {"A", "b", "x0", "monitor", "checkpoint", "raise_on_failure"}),
        (am.Solver, {"A", "prefix"}),
    ):
        assert said | more | {"options"} <= set(inspect.signature(call).parameters)
        for name in said | more:
            assert name in inspect.getdoc(call), (call, name)


def test_relative_residual():
    A = am.gallery.poisson((9, 9))
    x, info = am.solve(A, np.ones(81), ksp="cg", rtol=1e-7)
    assert isinstance(info.relative_residual, float)
    assert info.relative_residual == pytest.approx(np.linalg.norm(1 - A @ x) / 9, rel=1e-6, abs=1e-16)
    b = np.stack([np.ones(81), np.zeros(81)], 1)
    x, info = am.solve(A, b, ksp="cg", rtol=1e-7)
    assert info.relative_residual.shape == (2,) and info.relative_residual[1] == 0
    info.true_residual = np.array([1.0, 1.0])
    assert np.array_equal(info.relative_residual, [1 / 9, np.inf])


def test_pictures_leave_the_programs_matplotlib_alone(tmp_path, monkeypatch):
    """A notebook would show no plots any more."""
    import matplotlib

    monkeypatch.setattr(matplotlib, "use", lambda *_: pytest.fail("the backend is the program's"))
    A = am.gallery.poisson((8, 8))
    solver = am.Solver(A)
    solver.solve(np.ones(64))
    am.report.write_html(tmp_path / "r.html", am.report.collect("p", solver, solver.info))
    am.grid.Grid((8, 8)).picture(tmp_path / "g.png")
    am.comm_report(None).picture(tmp_path / "c.png")
    assert len(list(tmp_path.iterdir())) == 3
