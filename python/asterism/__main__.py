"""``asterism`` and ``python -m asterism``."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C is no error, also while NumPy and the compiled library are loaded."""
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        print("asterism: interrupted.", file=sys.stderr, flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main())
