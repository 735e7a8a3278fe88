"""A room includes or imports only rooms on floors below it (scripts/floors.json); MPI and threads stay in theirs; files stay short."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAN = json.loads((ROOT / "scripts" / "floors.json").read_text())
MOST_LINES, SUFFIXES = 500, (".cpp", ".hpp", ".py")
FLOORS, ROOMS_WITHIN = PLAN["rooms"], PLAN["within"]


def wrong_imports() -> list[str]:
    """Imports of the Python package that point upward; those within functions and for types alone are free."""
    package, floors, wrong = ROOT / "python" / "asterism", PLAN["python"], []
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        room = relative.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in floors:
            wrong.append(f"python/{relative}: room '{room}' is not in scripts/floors.json")
            continue
        up = "." * len(relative.parts)
        inner, where = PLAN["python within"].get(room, {}), "/".join(relative.parts[:-1])
        if inner and where not in inner:
            wrong.append(f"python/{relative}: '{where}' is not in scripts/floors.json")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            within = re.match(rf"from {re.escape(up[1:])}([a-z_]+)[a-z_.]* import", line) if inner else None
            if within and f"{room}/{within[1]}" not in (where, *inner[where]):
                wrong.append(f"python/{relative}:{number}: {where} must not import {within[1]}")
            found = re.match(rf"from {re.escape(up)}([a-z_]*)[a-z_.]* import (.*)", line)
            if not found:
                continue
            named = [found[1]] if found[1] else [n.strip() for n in found[2].split(",")]
            wrong += [
                f"python/{relative}:{number}: {room} must not import {n}"
                for n in named
                if n not in ("_core", room, *floors[room])
            ]
    return wrong


def long_files() -> list[str]:
    """Sources that nobody reads in one go."""
    sources = [p for folder in ("src", "python") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in SUFFIXES]
    lengths = {p: len(p.read_text().splitlines()) for p in sources}
    return [
        f"{p.relative_to(ROOT)}: {n} lines; a file has at most {MOST_LINES}"
        for p, n in lengths.items()
        if n > MOST_LINES
    ]


def main() -> int:
    wrong = long_files()
    for path in sorted((ROOT / "src" / "asterism").rglob("*.[ch]pp")):
        relative = path.relative_to(ROOT / "src" / "asterism")
        room = relative.parts[0]
        inner = ROOMS_WITHIN.get(room, {})
        where = "/".join(relative.parts[:-1])
        if inner and where not in inner:
            wrong.append(f"{relative}: '{where}' is not in scripts/floors.json")
            continue
        if room not in FLOORS:
            wrong.append(f"{relative}: room '{room}' is not in scripts/floors.json")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'#include ["<]asterism/([a-z_]+)/', line)
            if include and include[1] != room and include[1] not in FLOORS[room]:
                wrong.append(f"{relative}:{number}: {room} must not include {include[1]}")
            within = re.match(r'#include "asterism/([a-z_/]+)/', line)
            if inner and within and within[1].split("/")[0] == room and within[1] not in (where, *inner[where]):
                wrong.append(f"{relative}:{number}: {where} must not include {within[1]}")
            if "<mpi.h>" in line and not relative.name.startswith("mpi_plugin"):
                wrong.append(f"{relative}:{number}: only the files of comm/mpi/mpi_plugin include mpi.h")
            if re.search(r"\b(isend|irecv|issend|iprobe)\(", line) and room != "comm":
                wrong.append(f"{relative}:{number}: point-to-point messages belong to comm")
            if re.search(r"#pragma omp parallel|<omp\.h>|<thread>|cuda_runtime|hip_runtime", line):
                if relative.parts[:2] not in (("device", "host"), ("device", "gpu")):
                    wrong.append(
                        f"{relative}:{number}: threads and GPU run-times are named in device/host and device/gpu only"
                    )
    wrong += wrong_imports()
    # circles: the listed floors must be a partial order
    for floors in (FLOORS, *ROOMS_WITHIN.values(), PLAN["python"], *PLAN["python within"].values()):
        for room, below in floors.items():
            for other in below:
                if room in floors[other]:
                    wrong.append(f"floors.json: {room} and {other} stand on each other")
    print("\n".join(wrong) if wrong else "floors: no include points upward, no file is long")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
