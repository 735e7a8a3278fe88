"""The command line in the tests: in a process of its own, or in this one, which takes no time to start."""

import contextlib
import io
import logging
import sys

from conftest import PATIENCE, run_session

import asterism as am
from asterism.base import options
from asterism.cli.main import main


def run(*args, expect=0, limit=PATIENCE):
    """Return what the program says."""
    command = [sys.executable, "-m", "asterism", *map(str, args)]
    code, out = run_session(command, limit)
    assert code == expect, out
    return out


def said(*args, expect=0):
    """As run(), in this process; under mpiexec, what this rank says."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("asterism: %(message)s"))
    logging.getLogger().addHandler(handler)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main([str(a) for a in args])
        except SystemExit as error:  # argparse
            code = error.code
        finally:  # a process would have ended
            logging.getLogger().removeHandler(handler)
            options._file.clear()
            am.use_argv([])
    assert code == expect, out.getvalue()
    return out.getvalue()


def model(*words):
    """Exit code and output of asterism model."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(["model", *map(str, words)])
    return code, out.getvalue()
