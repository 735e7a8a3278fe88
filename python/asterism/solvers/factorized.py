"""Factors of a matrix, or those that another library made."""

from __future__ import annotations

from typing import Any

from ..comm.communicator import one_call
from ..errors import InputError, OptionError, UnsupportedError
from ..la.matrix import Matrix, as_operator
from .factors import Factors
from .solver import Solver
from .taken_factors import TakenFactors, given_factors

__all__ = ["factorized"]

_KINDS = ("lu", "cholesky")


@one_call("factorized")
def factorized(A: Any, kind: str = "lu", **more: Any) -> Factors:
    """Factor a sparse square matrix, or take factors that another library made.

    Parameters
    ----------
    A : Matrix, or what Matrix.from_scipy takes; or factors
        Factors: what ``scipy.sparse.linalg.splu`` returns, or ``scikits.umfpack.splu``, or ``sksparse.cholmod.cholesky`` (0.4). Each process
        has its own.
    kind : {"lu", "cholesky"}
        cholesky: of Hermitian A, L L^H or, where A turns out not to be positive definite, L D L^H. Half of the time and memory of lu.
    **more
        Arguments and options of `Solver`: ``null_space=``, ``pc_factor_mat_ordering_type="nd"``, ``pc_factor_pivot_threshold=0.5``.

    Returns
    -------
    Factors
        With ``solve`` and ``solve_transpose``; ``L``, ``U``, ``perm_r``, ``perm_c``, ``R`` and ``C``; ``condition``, ``determinant`` and
        ``inertia``. Of given factors a TakenFactors: answers are not refined, since A is not known.

    Raises
    ------
    InputError
        A is singular: structurally, with its rank, or since a pivot is at rounding level. Or it is not Hermitian, for cholesky. Where
        all pivots are larger, and A is singular to working precision all the same, `solve` says so. See ``condition``.
    OutOfMemoryError
        The factors would not fit. This is known before they are made.

    Notes
    -----
    Collective. On several ranks all share the factors of large matrices, and the first one has those of small ones (``pc_factor_layout``).
    L, U, the permutations and the scales are gathered on every rank when they are asked for.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = am.gallery.poisson((20, 20))
    >>> F = am.factorized(A, "cholesky")
    >>> x = F.solve(np.ones(400))
    >>> bool(F.info.backward_error <= 1e-15), F.inertia.positive
    (True, 400)

    The factors are those of the permuted and scaled matrix:

    >>> import scipy.sparse as sp
    >>> n = A.shape[0]
    >>> B = sp.diags_array(F.R) @ A.to_scipy() @ sp.diags_array(F.C)
    >>> LU = (F.L @ F.U)[F.perm_r][:, F.perm_c]
    >>> bool(abs(LU - B).max() < 1e-14)
    True

    SciPy's factors, solved with by asterism:

    >>> from scipy.sparse.linalg import splu
    >>> taken = am.factorized(splu(A.to_scipy().tocsc()))
    >>> bool(np.allclose(taken.solve(np.ones((400, 3))), x[:, None]))
    True
    """
    given = given_factors(A)
    if given is not None:
        if kind != "lu" or more:
            names = ", ".join([*(["kind"] if kind != "lu" else []), *more])
            raise InputError(f"factorized: {A!r} has factors already, so {names} would have no effect. Leave it out.")
        return TakenFactors(*given)
    if kind not in _KINDS:
        raise InputError(f"factorized: kind is {kind!r}; one of {', '.join(_KINDS)}.")
    operator = as_operator(A, "A")
    if not isinstance(operator, Matrix):
        raise UnsupportedError(f"factorized: A is {operator!r}; factors are made of the entries of a matrix.")
    sparse = {"pc_lu_type": "sparse"} if kind == "lu" else {}
    for name in ("ksp", "pc"):
        if name in more:
            raise OptionError(f"factorized: there is no argument {name}=, as it factors. am.Solver takes {name}=.")
    return Factors(Solver(operator, ksp="preonly", pc=kind, **{**sparse, **more}))
