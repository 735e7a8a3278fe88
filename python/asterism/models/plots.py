"""Plots of the models, as SVG, PNG or PDF.

Input: fits, efficiencies, predictions. Output: a file. Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.files import replacing
from ..errors import FileError, UnsupportedError
from .latency import LatencyThroughput
from .records import LevelTimes, Series
from .triangular import TriangularPrediction
from .vcycle import Prediction

__all__ = ["plot_fits", "plot_levels", "plot_scaling", "plot_speedup", "plot_triangular"]


def _draw(path: str | Path, draw: Callable[[Any], None]) -> None:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError("a plot needs matplotlib: pip install 'asterism-sparse[report]'") from error
    kind = Path(path).suffix[1:].lower()
    if kind not in ("svg", "png", "pdf"):
        raise FileError(f"'{path}': a plot is an .svg, .png or .pdf file.")
    with matplotlib.rc_context({"svg.hashsalt": "asterism"}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        draw(figure)
        with replacing(path, binary=True) as out:
            figure.savefig(out, format=kind, metadata={"Date": None} if kind == "svg" else None)


def plot_fits(path: str | Path, fits: Sequence[tuple[Series, LatencyThroughput]], ceiling: float | None = None) -> None:
    """Draw rates over sizes as points, and the fits as lines (Fig. 5 and 6 of the paper).

    Parameters
    ----------
    path : path-like
    fits : sequence of (Series, LatencyThroughput)
        Series of one unit, each with its fit.
    ceiling : float, optional
        A limit to draw, in bytes or points per second.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for series, found in fits:
            x = np.array(series.sizes)
            (dots,) = axes.loglog(x, x / np.array(series.seconds) / 1e9, "o", markersize=4)
            line = np.geomspace(x.min(), x.max(), 100)
            text = f"{series.name}: {1e6 * found.alpha:.3g} us, {found.beta / 1e9:.3g} G{series.unit}/s"
            axes.loglog(line, found.rate(line) / 1e9, color=dots.get_color(), linewidth=1, label=text)
        if ceiling:
            axes.axhline(ceiling / 1e9, color="0.4", linestyle="--", linewidth=1, label=f"ceiling {ceiling / 1e9:.4g}")
        unit = fits[0][0].unit
        axes.set_xlabel(unit)
        axes.set_ylabel(f"10^9 {unit} per second")
        axes.legend(frameon=False, fontsize=8)
        axes.grid(True, alpha=0.3)

    _draw(path, draw)


def plot_levels(path: str | Path, found: Sequence[LevelTimes]) -> None:
    """Draw the seconds of a solve on each level, with a bar of its operations for each file (Fig. 3).

    Parameters
    ----------
    path : path-like
    found : sequence of LevelTimes
        One for each file.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        operations = list(dict.fromkeys(op for f in found for level in f.levels for op in level))
        most = max(len(f.levels) for f in found)
        for n, f in enumerate(found):
            at = np.arange(len(f.levels)) + (n - (len(found) - 1) / 2) * 0.8 / len(found)
            bottom = np.zeros(len(f.levels))
            for m, op in enumerate(operations):
                height = np.array([level.get(op, 0.0) for level in f.levels])
                label = op if n == 0 else None
                axes.bar(at, height, 0.72 / len(found), bottom=bottom, color=f"C{m % 10}", label=label)
                bottom += height
            if len(found) > 1:
                for x, y in zip(at, bottom, strict=True):
                    axes.annotate(f.name, (x, y), fontsize=6, rotation=90, ha="center", va="bottom")
        axes.margins(y=0.12)
        axes.set_xticks(range(most))
        axes.set_xlabel("level")
        axes.set_ylabel("seconds of a solve")
        axes.legend(frameon=False, fontsize=8)

    _draw(path, draw)


def plot_speedup(path: str | Path, platforms: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Draw the fractions of theoretical intensity and of roofline, with curves of equal potential speed-up (Fig. 7).

    Parameters
    ----------
    path : path-like
    platforms : mapping of str to mapping of str to (float, float)
        For each platform and kernel: the fraction of the roofline, and that of the intensity.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        x = np.linspace(0.2, 1, 200)
        for speedup in (1.2, 1.5, 2, 4):
            axes.plot(100 * x, 100 / (speedup * x), color="0.7", linewidth=1)
            axes.annotate(
                f"{speedup:g}x",
                (100 * max(0.21, 1 / speedup), min(99, 100 / (speedup * max(0.21, 1 / speedup)))),
                fontsize=8,
            )
        for marker, (platform, kernels) in zip("osD^v<>*" * (1 + len(platforms) // 8), platforms.items(), strict=False):
            points = np.array(list(kernels.values()))
            axes.plot(100 * points[:, 1], 100 * points[:, 0], marker, label=platform)
            for name, (roof, intensity) in kernels.items():
                place = (100 * intensity, 100 * roof)
                axes.annotate(name, place, fontsize=6, xytext=(-4, 3), textcoords="offset points", ha="right")
        axes.set_xlim(20, 102)
        axes.set_ylim(20, 102)
        axes.set_xlabel("% of theoretical intensity")
        axes.set_ylabel("% of roofline")
        axes.legend(frameon=False, loc="lower left")

    _draw(path, draw)


def plot_scaling(path: str | Path, kind: str, machines: Mapping[str, Sequence[tuple[Prediction, float]]]) -> None:
    """Draw points per second and parallel efficiency over nodes (Fig. 8 and 9).

    Parameters
    ----------
    path : path-like
    kind : {"weak", "strong"}
        For the label.
    machines : mapping of str to sequence of (Prediction, float)
        For each machine its predictions with their efficiencies, as `scaling` returns them.
    """

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for name, found in machines.items():
            nodes = [int(np.prod(p.placement.nodes)) for p, _ in found]
            left.loglog(nodes, [p.points_per_second / 1e9 for p, _ in found], "o-", label=name)
            right.semilogx(nodes, [100 * e for _, e in found], "o-", label=name)
        left.set_ylabel("10^9 points per second")
        right.set_ylabel("% parallel efficiency")
        right.set_ylim(0, 110)
        for axes in (left, right):
            axes.set_xlabel(f"nodes, {kind} scaling (model)")
            axes.grid(True, alpha=0.3)
        left.legend(frameon=False)

    _draw(path, draw)


def plot_triangular(
    path: str | Path, name: str, found: Sequence[TriangularPrediction], measured: Mapping[int, float]
) -> None:
    """Draw computation and communication on the critical path as bars over ranks, with simulated and measured times (Fig. 7).

    Parameters
    ----------
    path : path-like
    name : str
        Of the matrix.
    found : sequence of TriangularPrediction
        One for each number of ranks.
    measured : mapping of int to float
        Seconds of both sweeps, by ranks.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        at = np.arange(len(found))
        compute = [1e3 * (p.forward.compute + p.backward.compute) for p in found]
        messages = [1e3 * (p.forward.communication + p.backward.communication) for p in found]
        axes.bar(at, compute, color="tab:blue", label="computation (critical path)")
        axes.bar(at, messages, bottom=compute, color="gold", label="communication (critical path)")
        if all(p.simulated is not None for p in found):
            axes.plot(at, [1e3 * p.seconds for p in found], "k_", markersize=14, label="simulated")
        dots = [(i, 1e3 * measured[p.ranks]) for i, p in enumerate(found) if p.ranks in measured]
        if dots:
            axes.plot(*zip(*dots, strict=True), "o", color="tab:red", label="measured")
        axes.set_xticks(at, [f"{p.ranks}\n{p.layout}" for p in found])
        axes.set_xlabel("ranks")
        axes.set_ylabel("ms, both sweeps")
        axes.set_title(name, fontsize=9)
        axes.legend(frameon=False)

    _draw(path, draw)
