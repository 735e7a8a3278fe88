"""One self-contained HTML page about a solve."""

from __future__ import annotations

import html
import io
from pathlib import Path

import numpy as np

from ..base.files import replacing
from ..errors import UnsupportedError
from .collect import Findings
from .text import max_of, summary

__all__ = ["write_html"]

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1d2430;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #d5dae2}
table{border-collapse:collapse;width:100%;font-size:.92em}td,th{padding:.25em .6em;text-align:left;border-bottom:1px solid #e7eaef}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}pre{background:#f5f6f8;padding:1em;overflow-x:auto}
.bar{background:#e7eaef;height:.7em;width:8em;display:inline-block;vertical-align:middle}
.bar i{background:#2b6cb0;height:100%;display:block}.set td{font-weight:600}
.ok{color:#17693a}.bad{color:#a3201d}
@media(prefers-color-scheme:dark){body{background:#14181f;color:#dfe4ea}pre{background:#1d232c}td,th{border-color:#2b323d}h2{border-color:#2b323d}.plot{background:#fff}}
"""


def _residual_plot(f: Findings) -> str:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError("a report needs matplotlib: pip install 'asterism-sparse[report]'") from error
    norms = np.asarray(f.info.residual_norms, dtype=float)
    columns = norms[:, None] if norms.ndim == 1 else norms
    with matplotlib.rc_context({"svg.hashsalt": "asterism", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for column in columns.T[:8]:
            shown = np.where(column > 0, column, np.nan)
            axes.semilogy(shown, marker="." if len(shown) < 60 else None, linewidth=1.5)
        target = next((float(o["value"]) for o in f.options if o["name"].endswith("ksp_rtol")), 0.0)
        if target and max_of(f.info.rhs_norm) > 0:
            axes.axhline(target * max_of(f.info.rhs_norm), color="0.5", linestyle="--", linewidth=1, label="target")
            axes.legend(frameon=False)
        axes.set_xlabel("iteration")
        axes.set_ylabel("||b - A x||")
        axes.grid(True, alpha=0.3)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def write_html(path: str | Path, f: Findings) -> None:
    """Write a report as one HTML page, with pictures.

    Parameters
    ----------
    path : str or Path
        Written beside and renamed: an older file is there until the new one is whole.
    f : Findings
        Of `collect`.

    Notes
    -----
    Not collective: one rank calls. Matplotlib is needed.
    """
    esc = html.escape
    i = f.info
    total = sum(e["self_seconds"] for e in f.events) or 1.0
    rows = []
    for e in f.events:
        rate = e["bytes"] / e["self_seconds"] if e["self_seconds"] > 0 else 0.0
        share = min(100.0, 100 * e["self_seconds"] / total)
        rows.append(
            f"<tr><td>{esc(e['name'])}</td><td><span class=bar><i style='width:{share:.1f}%'></i></span> {share:.1f} %</td>"
            f"<td class=n>{e['calls']}</td><td class=n>{e['self_seconds']:.4f}</td>"
            + (
                f"<td class=n>{rate / 1e9:.1f}</td><td class=n>{100 * rate / f.triad:.0f} %</td>"
                if e["bytes"]
                else "<td></td><td></td>"
            )
            + f"<td class=n>{e['messages'] or ''}</td><td class=n>{e['reductions'] or ''}</td></tr>"
        )
    options = []
    seen: dict[str, dict[str, str]] = {o["name"]: o for o in f.options}
    for o in seen.values():
        mark = "" if o["origin"] == "default" else " class=set"
        options.append(
            f"<tr{mark}><td><code>-{esc(o['name'])}</code></td><td>{esc(o['value'])}</td><td>{esc(o['origin'])}</td><td>{esc(o['help'])}</td></tr>"
        )
    verdict = "ok" if i.converged else "bad"
    page = f"""<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Asterism: {esc(f.problem)}</title><style>{_STYLE}</style></head><body>
<h1>{esc(f.problem)}</h1>
<p class={verdict}><b>{esc(i.reason)}</b> after {i.iterations} iterations of {esc(i.method)} + {esc(i.preconditioner)};
set-up {i.setup_seconds:.3f} s, solve {i.solve_seconds:.3f} s on {f.ranks} rank(s) x {f.threads} thread(s).</p>
<h2>What limited it, and what to try</h2><ul>{"".join(f"<li>{esc(a)}</li>" for a in f.advice)}</ul>
<h2>Residual</h2><div class=plot>{_residual_plot(f)}</div>
<h2>Where time went</h2>
<p>Seconds of the slowest rank without the events inside; GB/s of all ranks against this machine's measured triad, {f.triad / 1e9:.1f} GB/s.
More than 100 % means data in cache.</p>
<table><tr><th>event<th>share<th class=n>calls<th class=n>seconds<th class=n>GB/s<th class=n>of triad<th class=n>messages<th class=n>reductions</tr>{"".join(rows)}</table>
<h2>Solver</h2><pre>{esc(f.view)}</pre>
<h2>Options in force</h2><p>Bold: not the default.</p>
<table><tr><th>option<th>value<th>from<th>meaning</tr>{"".join(options)}</table>
<h2>Summary</h2><pre>{esc(summary(f))}</pre>
</body></html>
"""
    with replacing(path) as out:
        out.write(page)
