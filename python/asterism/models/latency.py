"""The linear model of time: seconds = alpha + size / beta, or the rate f(x) = x / (alpha + x / beta).

Input: sizes and the seconds of each. Output: `LatencyThroughput`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, ShapeError

__all__ = ["LatencyThroughput", "fit"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatencyThroughput:
    """A fit of seconds = alpha + size / beta; made by `models.fit`.

    Attributes
    ----------
    alpha, beta : float
        Latency in seconds, and the rate of very large sizes in units of size per second.
    alpha_error, beta_error : float
        Standard errors; infinite where the sizes do not determine the parameter.
    fit_error : float
        Root mean square of the relative errors of the fit.
    holdout_error : float
        The same where each size is predicted from a fit of the others; NaN for three sizes.
    sizes : tuple of float
        Least and largest size of the fit. Beyond them it extrapolates.
    """

    alpha: float
    beta: float
    alpha_error: float
    beta_error: float
    fit_error: float
    holdout_error: float
    sizes: tuple[float, float]

    @property
    def half_size(self) -> float:
        """The size that reaches half of beta."""
        return self.alpha * self.beta

    def seconds(self, size: ArrayLike) -> Any:
        """Return alpha + size / beta.

        Parameters
        ----------
        size : array_like
            In the unit of the fit.

        Returns
        -------
        float or array of size's shape
            Seconds.
        """
        return self.alpha + np.asarray(size, float) / self.beta

    def rate(self, size: ArrayLike) -> Any:
        """Return the rate f(x) = x / (alpha + x / beta).

        Parameters
        ----------
        size : array_like
            In the unit of the fit.

        Returns
        -------
        float or array of size's shape
            Size per second: half of beta at `half_size`.
        """
        return np.asarray(size, float) / self.seconds(size)


def fit(sizes: ArrayLike, seconds: ArrayLike) -> LatencyThroughput:
    """Fit latency and throughput, with equal weight for equal relative errors.

    Parameters
    ----------
    sizes, seconds : array_like, shape (n,)
        Positive, of at least three different sizes. Sizes are in any unit, such as bytes or points.

    Returns
    -------
    LatencyThroughput

    Raises
    ------
    ShapeError
        The two are not lists of one length.
    InputError
        A value is not positive and finite, or there are fewer than three different sizes.

    Notes
    -----
    Least squares of log(seconds), so that microseconds count as much as seconds. Errors come from the Jacobian at the solution. SciPy is
    needed. Source: Antepara, Williams, Johansen and Hall (2024), Fig. 5 and 6.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> x = 8.0 ** np.arange(1, 9)
    >>> found = am.models.fit(x, 2e-6 + x / 25e9)
    >>> f"{found.alpha:.2e} s, {found.beta:.3e} bytes/s"
    '2.00e-06 s, 2.500e+10 bytes/s'
    """
    x, t = np.asarray(sizes, float), np.asarray(seconds, float)
    if x.ndim != 1 or x.shape != t.shape:
        raise ShapeError(f"sizes {x.shape} and seconds {t.shape}: two lists of equal length are needed.")
    bad = [v for a in (x, t) for v in a if not (math.isfinite(v) and v > 0)]
    if bad:
        raise InputError(f"sizes and seconds have {bad[0]}; they must be positive and finite.")
    if len(set(x.tolist())) < 3:
        raise InputError(
            f"{len(set(x.tolist()))} different sizes: latency and throughput with errors need three or more."
        )
    alpha, slope, errors, relative = _least_squares(x, t)
    left_out = [_predicted(x, t, m) for m in range(x.size)] if len(set(x.tolist())) > 3 else []
    return LatencyThroughput(
        alpha,
        1 / slope if slope > 0 else math.inf,
        errors[0],
        errors[1] / slope / slope if slope > 0 else math.inf,
        _rms(relative),
        _rms(left_out) if left_out else math.nan,
        (float(x.min()), float(x.max())),
    )


def _rms(values: Sequence[float] | _Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _predicted(x: _Floats, t: _Floats, m: int) -> float:
    kept = np.arange(x.size) != m
    alpha, slope, _, _ = _least_squares(x[kept], t[kept])
    return float((alpha + slope * x[m]) / t[m] - 1)


def _least_squares(x: _Floats, t: _Floats) -> tuple[float, float, tuple[float, float], _Floats]:
    """Return alpha, 1 / beta, the standard errors of both, and relative errors."""
    from scipy.optimize import least_squares

    by_alpha, by_slope = float(t.min()), float(t.max() / x.max())
    columns = np.stack([np.full_like(x, by_alpha), by_slope * x], axis=1)

    def difference(p: _Floats) -> _Floats:
        difference: _Floats = np.log(columns @ p) - np.log(t)
        return difference

    def jacobian(p: _Floats) -> _Floats:
        slopes: _Floats = columns / (columns @ p)[:, None]
        return slopes

    exact: dict[str, Any] = {"jac": jacobian, "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "x_scale": "jac"}
    found = least_squares(difference, [0.5, 0.5], bounds=(0, np.inf), **exact)
    J, free = jacobian(found.x), x.size - 2
    square = float(np.sum(difference(found.x) ** 2)) / free if free else 0.0
    normal = J.T @ J
    errors = (math.inf, math.inf)
    if np.linalg.cond(normal) < 1e14:
        covariance = square * np.linalg.inv(normal)
        errors = (by_alpha * math.sqrt(covariance[0, 0]), by_slope * math.sqrt(covariance[1, 1]))
    # a term that is rounding beside every time is not there
    there = (found.x * jacobian(found.x)).mean(axis=0) > 1e-9
    alpha, slope = by_alpha * float(found.x[0] * there[0]), by_slope * float(found.x[1] * there[1])
    return alpha, slope, errors, np.expm1(difference(found.x))
