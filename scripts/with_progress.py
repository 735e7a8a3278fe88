"""Run a build, showing how far it is; its own output comes where it fails.

Usage: python scripts/with_progress.py pip install -v ...
"""

from __future__ import annotations

import re
import subprocess
import sys
import time


def main(command: list[str]) -> int:
    """Return the command's exit status."""
    terminal = sys.stdout.isatty()
    lines: list[str] = []
    shown = 0
    start = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            lines.append(line)
            step = re.match(r"\s*\[(\d+)/(\d+)\] ", line)  # as ninja counts
            if not step:
                continue
            done, steps = int(step[1]), int(step[2])
            text = f"compiling: {done} of {steps} steps, {time.monotonic() - start:.0f} s"
            if terminal:
                print(f"\r{text}  ", end="", flush=True)
            elif steps > 20 and done * 10 // steps > shown:  # a log gets ten lines
                print(text, flush=True)
            shown = done * 10 // steps
    if terminal and shown:
        print()
    if run.returncode != 0:
        sys.stdout.writelines(lines)
    return run.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
