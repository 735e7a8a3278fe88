"""Draws docs/images/rooms.svg: the rooms of scripts/floors.json, each above those that it includes."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTENTS = {
    "base": "errors, dtypes, options, events, log, progress",
    "device": "queues, arrays, scalars, threads, GPUs",
    "comm": "communicators, sums, star forests, channels",
    "stencil": "tables of stencils (compiler: in Python)",
    "grid": "structured grids, ghost points",
    "la": "vectors, matrices, operators, files",
    "krylov": "iterative methods, stopping rules",
    "direct": "sparse factors, triangular solves",
    "precond": "preconditioners, multigrid",
    "solve": "Solver: set-up, verification, advice",
    "apps": "model problems, benchmark loops",
    "python": "typed layer, command line, reports",
}
COLUMN = {
    "krylov": 0.0,
    "precond": 1.0,
    "grid": 2.0,
    "stencil": 2.0,
    "direct": 3.0,
}  # all others stand in the middle of the first two
WIDTH, HEIGHT, BESIDE, ABOVE, MARGIN = 320, 54, 36, 40, 12


def floors(below: dict[str, list[str]]) -> dict[str, int]:
    """Return for each room the length of the longest chain of rooms below it."""
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = max((floor(r) + 1 for r in below[room]), default=0)
        return found[room]

    for room in below:
        floor(room)
    return found


def direct(below: dict[str, list[str]], room: str) -> list[str]:
    """Return the rooms below one, without those that stand below another of them."""
    return [r for r in below[room] if not any(r in below[other] for other in below[room])]


def picture() -> str:
    """Return the drawing. All text is dark on light boxes, and arrows are grey, so that any background will do."""
    below = dict(json.loads((HERE.parent / "scripts" / "floors.json").read_text())["rooms"])
    below["python"] = list(below)
    floor = floors(below)
    top = max(floor.values())
    place = {
        r: (MARGIN + COLUMN.get(r, 0.5) * (WIDTH + BESIDE), MARGIN + (top - floor[r]) * (HEIGHT + ABOVE)) for r in below
    }
    wide = 4 * WIDTH + 3 * BESIDE + 2 * MARGIN
    tall = 2 * MARGIN + (top + 1) * HEIGHT + top * ABOVE
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>The rooms of the library, each above the rooms that it includes</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#7a8794"/></marker></defs>',
    ]
    for room, (x, y) in place.items():
        for other in direct(below, room):
            to_x, to_y = place[other]
            x0, y0, x1, y1 = x + WIDTH / 2, y + HEIGHT, to_x + WIDTH / 2, to_y - 1
            bend = f"M{x0:g} {y0:g} L{x0:g} {y0 + ABOVE / 2:g} L{x1:g} {y0 + ABOVE / 2:g}"
            if floor[room] > floor[other] + 1:  # past other floors: out at the side, down in the other's column
                bend = f"M{x + WIDTH:g} {y + HEIGHT / 2:g} L{x1:g} {y + HEIGHT / 2:g}"
            out.append(
                f'<path d="{bend} L{x1:g} {y1:g}" fill="none" stroke="#7a8794" stroke-width="1.6" marker-end="url(#tip)"/>'
            )
    for room, (x, y) in place.items():
        out += [
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="7" fill="#e3edf7" stroke="#5b7fa3"/>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 22:g}" text-anchor="middle" font-size="16" font-weight="bold" '
            f'fill="#14222f">{room}</text>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 42:g}" text-anchor="middle" font-size="13" fill="#14222f">'
            f"{CONTENTS[room]}</text>",
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    (HERE / "images" / "rooms.svg").write_text(picture())
