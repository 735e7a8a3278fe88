"""Ranks that run one script after another: a launch of mpiexec costs more than most scripts.

A script finds them as new processes are: names, options, environment, folder, warnings and logging are put back behind each. One that
fails ends them all, and the next gets others.
"""

import ctypes
import faulthandler
import gc
import importlib
import logging
import os
import selectors
import socket
import subprocess
import sys
import time
import traceback
import types
import warnings
from pathlib import Path

START_LIMIT = 120  # seconds until all ranks must be there


class Team:
    """N ranks under a launcher, which this process talks to by a socket each."""

    def __init__(self, n, launcher, env, folder):
        """Start them. `launcher`: the command that takes what to start; `folder`: for what it says itself."""
        self.scripts = []
        self._said = Path(folder) / "launcher.txt"
        with socket.create_server(("127.0.0.1", 0)) as server, self._said.open("w") as said:
            command = [*launcher, sys.executable, __file__, str(server.getsockname()[1])]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
            server.settimeout(1)
            self._ranks = {}
            end = time.monotonic() + START_LIMIT
            while len(self._ranks) < n and self.process.poll() is None and time.monotonic() < end:
                try:
                    connection = server.accept()[0]
                except TimeoutError:
                    continue
                connection.settimeout(START_LIMIT)
                lines = connection.makefile("rw")
                self._ranks[int(lines.readline())] = connection, lines
                connection.settimeout(None)
        self.started = len(self._ranks) == n

    def run(self, path, seconds):
        """None, or why not all ranks came to the script's end: "failed", "hung"."""
        self.scripts.append(str(path))
        why, end = None, time.monotonic() + seconds
        with selectors.DefaultSelector() as waiting:
            for rank, (connection, lines) in self._ranks.items():
                waiting.register(connection, selectors.EVENT_READ, lines)
                try:
                    print(path, f"{path}.{rank}", os.getcwd(), file=lines, flush=True, sep="\t")
                except OSError:
                    why = "failed"
            while waiting.get_map() and not why:
                ready = waiting.select(max(0, end - time.monotonic()))
                why = None if ready else "hung"
                for key, _ in ready:
                    if key.data.readline() != "done\n":
                        why = "failed"
                    waiting.unregister(key.fileobj)
        if why == "failed":  # the launcher ends the others
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                pass
        return why

    def output(self, path, why):
        """What the ranks have printed, one after the other, and the launcher where it did not end well."""
        files = [Path(f"{path}.{rank}") for rank in sorted(self._ranks)]
        out = "".join(f.read_text(errors="replace") for f in files if f.exists())
        return out + (self._said.read_text(errors="replace") if why else "")

    def end(self):
        """Exit code and words of the launcher when all ranks have ended as processes do."""
        for connection, lines in self._ranks.values():
            lines.close()
            connection.close()
        code = self.process.wait(timeout=60)
        return code, self._said.read_text(errors="replace")


def restorer():
    """A function that puts back what a script may change for its whole process."""
    import asterism as am
    from asterism.base import options

    loggers = [logging.getLogger(name) for name in ("root", "asterism")]
    configured, environment, here, path = am.configure(), dict(os.environ), os.getcwd(), list(sys.path)
    logged = [(logger, list(logger.handlers), logger.level) for logger in loggers]

    def restore():
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        os.chdir(here)
        sys.path[:] = path
        for logger, handlers, level in logged:
            logger.handlers[:] = handlers
            logger.setLevel(level)
        options._file.clear()
        am.use_argv([])
        am.configure(**configured)

    return restore


def rank_of_a_team(port):
    """Run the scripts whose paths come, each with a file for what it prints."""
    from mpi4py import MPI

    importlib.import_module("asterism")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines = connection.makefile("rw")
        print(MPI.COMM_WORLD.rank, file=lines, flush=True)
        for line in lines:
            path, out, folder = line.rstrip("\n").split("\t")
            said = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.close(said)
            restore = restorer()
            os.chdir(folder)
            script = sys.modules["__main__"] = types.ModuleType("__main__")
            script.__file__ = path
            try:
                with warnings.catch_warnings():
                    exec(compile(Path(path).read_text(), path, "exec"), script.__dict__)
            except BaseException as error:
                code = error.code if isinstance(error, SystemExit) else 1
                if code:
                    traceback.print_exc()
                    sys.stdout.flush()
                    os._exit(code if isinstance(code, int) else 1)
            restore()
            script.__dict__.clear()
            gc.collect()  # what MPI frees is freed by all ranks together
            MPI.COMM_WORLD.Barrier()
            faulthandler.cancel_dump_traceback_later()
            ctypes.CDLL(None).fflush(None)
            sys.stdout.flush()
            sys.stderr.flush()
            print("done", file=lines, flush=True)


if __name__ == "__main__":
    rank_of_a_team(int(sys.argv[1]))
