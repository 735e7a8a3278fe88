"""No option is accepted without effect: it does what it says, warns, or is refused."""

import logging
import sys

import numpy as np
import pytest

import asterism as am


def test_log_view_prints_the_table_of_events(capsys):
    A = am.gallery.poisson((20, 20))
    am.solve(A, np.ones(400), ksp="cg", pc="jacobi")
    assert "where time went" not in capsys.readouterr().out
    am.solve(A, np.ones(400), ksp="cg", pc="jacobi", log_view=True)
    out = capsys.readouterr().out
    assert out.startswith("where time went") and "MatMult" in out and "KSPSolve" in out


@pytest.mark.parametrize("pc", ["amg", "ilu", "jacobi", "lu"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_preconditioner_may_be_wider_than_the_matrix(pc, dtype):
    A = am.gallery.poisson((30, 30)).astype(dtype)
    b = np.ones(900, dtype)
    s = am.Solver(A, "-pc_dtype float64", ksp="gmres", pc=pc, rtol=1e-4)
    x = s.solve(b)
    wide = "float64" if dtype == "float32" else "complex128"
    assert x.dtype == dtype and f"in {wide}" in s.info.preconditioner, s.info.preconditioner
    assert np.linalg.norm(b - A @ x) <= 1.01e-4 * np.linalg.norm(b)
    s.update(A.with_values(2 * A.to_scipy().data))
    assert np.allclose(s.solve(b), x / 2, rtol=0, atol=1e-3 * abs(x).max())
    narrow = am.Solver(A, ksp="gmres", pc=pc, rtol=1e-4)
    narrow.solve(b)
    assert wide not in narrow.info.preconditioner
    if pc == "lu":  # the factors differ, not only what is said of them
        assert s.info.memory_bytes > 1.5 * narrow.info.memory_bytes


@pytest.mark.parametrize(
    ("options", "without"),
    [
        ("-pc_type ilu -pc_factor_shift_amount 0.1", "-pc_factor_shift_type nonzero"),
        ("-pc_type icc -pc_factor_shift_amount 0.1 -pc_factor_shift_type positive_definite", None),
        ("-pc_type ilut -pc_factor_shift_amount 0.1 -pc_factor_shift_type none", None),
        ("-pc_type amg -pc_amg_coarse_size 50 -mg_levels_pc_type sor -pc_amg_reuse_interpolation false", ""),
    ],
)
def test_options_that_count_beside_others_alone(options, without, caplog):
    A = am.gallery.poisson((20, 20))

    def said(options):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "asterism"):
            am.solve(A, np.ones(400), ksp="gmres", options=options)
        return any("has no effect" in r.message for r in caplog.records)

    assert said(options) == (without != "")
    if without:
        assert not said(f"{options} {without}")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("mg_coarse_pc_type jacobi", "The coarsest level of -pc_type amg is solved directly"),
        ("mg_coarse_ksp_type preonly", "The coarsest level of -pc_type amg is solved directly"),
        ("mg_levels_ksp_chebyshev_esteig 0,0.1,0,1.1", "the spectrum is estimated"),
        ("ksp_chebyshev_eigenvalues 0.1,2", "-ksp_chebyshev_min and -ksp_chebyshev_max"),
        ("ksp_constant_null_space", "-ksp_null_space constant"),
        ("options_file a.txt", "--options-file"),
    ],
)
def test_options_of_petsc_that_have_another_name_here(option, text):
    with pytest.raises(am.OptionError, match=f"unknown option -{option.split()[0]} .*{text}"):
        am.Solver(am.gallery.poisson((30, 30)), f"-{option}", ksp="cg", pc="amg")


@pytest.mark.parametrize("pc", ["ilu", "ilut", "icc", "sor", "bjacobi", "asm", "jacobi", "amg", "chebyshev", "lu"])
def test_reproducible_says_where_it_cannot_keep_its_word(pc, caplog):
    A = am.gallery.poisson((12, 12))
    am.configure(reproducible=True)
    try:
        with caplog.at_level(logging.WARNING, "asterism"):
            am.Solver(A, ksp="gmres", pc=pc)
    finally:
        am.configure(reproducible=False)
    said = any("-reproducible" in r.message and pc in r.message for r in caplog.records)
    assert said == (pc not in ("jacobi", "amg", "chebyshev", "lu"))


def test_a_handler_that_fails_does_not_stop_the_solve(monkeypatch):
    class Failing(logging.Handler):
        def emit(self, record):
            raise ValueError(f"no place for {record.getMessage()}")

    said, handler, logger = [], Failing(), logging.getLogger("asterism")
    monkeypatch.setattr(sys, "unraisablehook", lambda u: said.append(str(u.exc_value)))
    logger.addHandler(handler)
    try:
        x, info = am.solve(am.gallery.poisson((20, 20)), np.ones(400), ksp="cg", options="-ksp_gmres_restart 7")
    finally:
        logger.removeHandler(handler)
    assert info.converged and np.isfinite(x).all() and said and "no place for" in said[0]


def test_solvers_of_other_prefixes_keep_their_options(caplog, monkeypatch):
    A = am.gallery.poisson((12, 12))
    words = "-u_ksp_type cg -p_ksp_type fgmres -p_pc_type ksp -p_ksp_pc_type jacobi -ksp_type gmres".split()
    monkeypatch.setenv("ASTERISM_OPTIONS", "-u_pc_type jacobi")
    try:
        am.use_argv(words, prefixes=["", "u_", "p_"])
        with caplog.at_level(logging.WARNING, "asterism"):
            methods = [
                am.Solver(A, prefix=prefix).view().split("method: ")[1].split()[0] for prefix in ("u_", "p_", "")
            ]
        assert methods == ["cg", "fgmres", "gmres"] and not caplog.records
        am.use_argv([*words, "-p_ksp_rtl", "1e-3"], prefixes=["", "u_", "p_"])
        with pytest.raises(am.OptionError, match="unknown option -p_ksp_rtl"):
            am.Solver(A, prefix="u_")
        am.use_argv([*words, "-u_ksp_gmres_restart", "3"], prefixes=["", "u_", "p_"])
        with caplog.at_level(logging.WARNING, "asterism"):
            am.Solver(A, prefix="u_")
        assert ["-u_ksp_gmres_restart" in r.message for r in caplog.records] == [True]
        am.use_argv(["-u_ksp_type", "cg", "-u_fine_ksp_type", "minres"], prefixes=["u_", "u_fine_"])
        for prefix, method in (("u_", "cg"), ("u_fine_", "minres")):
            assert am.Solver(A, prefix=prefix)._h.method == method
        am.use_argv(words[:2])
        with pytest.raises(am.OptionError, match=r"unknown option -.*use_argv\(prefixes="):
            am.Solver(A, prefix="p_")
    finally:
        am.use_argv([])
