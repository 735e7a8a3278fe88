"""One system, solved in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..base.options import check_keywords
from ..comm.agree import agreed
from ..comm.communicator import one_call
from ..la.matrix import as_operator
from .info import SolveInfo
from .input import check_checkpoint, prepared
from .solver import Monitor, Solver

__all__ = ["solve"]


@one_call("solve")
def solve(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    ksp: str | None = None,
    pc: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    restart: int | None = None,
    options: Any = None,
    P: Any = None,
    M: Any = None,
    block_size: int | None = None,
    coordinates: Any = None,
    near_null_space: Any = None,
    null_space: Any = None,
    monitor: Monitor | None = None,
    raise_on_failure: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 200,
    **more: Any,
) -> tuple[NDArray[Any], SolveInfo]:
    """Solve A x = b.

    Parameters
    ----------
    A : Matrix or Operator, SciPy sparse matrix, array or LinearOperator, or dense array, shape (n, n)
    b : array, shape (n,) or (n, k)
        My rows.
    x0 : array, optional
        Initial guess; zero by default.
    ksp, pc : str, optional
        Method and preconditioner; chosen by a look at the matrix if not given.
    rtol, atol : float, optional
        Stop when ``||b - A x|| <= max(rtol ||b||, atol)``; defaults 1e-5 and 0.
    maxiter, restart : int, optional
        Most iterations; iterations of gmres between restarts.
    options : str or dict, optional
        Any option by PETSc's name.
    P, M : optional
        A matrix near A that preconditioners are set up on; an approximate inverse of A instead of a preconditioner.
    block_size, coordinates, near_null_space, null_space : optional
        Unknowns of a node; coordinates of my nodes, for elasticity; vectors that A maps to nearly zero; to zero. As for `Solver`.
    monitor : callable(iteration, residual norm), optional
    raise_on_failure, checkpoint, checkpoint_every : optional
        As for `Solver.solve`.
    **more
        Any other option by its full name: ``pc_amg_threshold=0.1``.

    Returns
    -------
    x : array of b's shape
    info : SolveInfo

    Raises
    ------
    ConvergenceError
        If the solve did not converge; it carries ``x`` and ``info``.

    Notes
    -----
    Collective. What is given is checked before the set-up.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = am.gallery.poisson((30, 30))
    >>> x, info = am.solve(A, np.ones(900), ksp="cg", pc="jacobi", rtol=1e-10)
    >>> info.reason
    'CONVERGED_RTOL'
    """
    op = as_operator(A, "A")

    def check() -> None:
        check_keywords(more, Solver._SHORT, solve)
        prepared(op, b, x0, monitor, checkpoint)
        if checkpoint is not None:
            check_checkpoint(checkpoint, checkpoint_every, False)

    agreed(op._h.rows.comm, check)
    s = Solver(
        op,
        options,
        P=P,
        M=M,
        ksp=ksp,
        pc=pc,
        rtol=rtol,
        atol=atol,
        maxiter=maxiter,
        restart=restart,
        block_size=block_size,
        coordinates=coordinates,
        near_null_space=near_null_space,
        null_space=null_space,
        **more,
    )
    x = s.solve(
        b,
        x0,
        monitor=monitor,
        raise_on_failure=raise_on_failure,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    assert s.info is not None
    return x, s.info
