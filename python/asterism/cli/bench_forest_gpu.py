"""``asterism bench pingpong|unpack --device cuda``: star forests between GPUs, beside MPI between hosts and the GPU's own copies."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from ..comm.communicator import as_communicator
from ..comm.forest import StarForest
from ..comm.queued_forest import QueuedForest
from ..device.queue import Queue
from ..errors import CommError
from .bench_gpu import seconds_of, vector_of
from .progress import steps
from .table import in_bytes, microseconds, print_table

__all__ = ["pingpong_on_device", "print_pingpong", "print_unpack", "unpack_on_device"]


def _transports(comm: Any, queue: Queue) -> tuple[list[str], dict[str, str]]:
    """Transports between GPUs that can be used here, and why others cannot."""
    able, unable = [], {}
    for transport in ("nccl", "ipc", "nvshmem", "p2p"):
        try:
            StarForest(comm, 0, None, [], transport=transport).on(queue)
            able.append(transport)
        except CommError as error:  # on all ranks
            unable[transport] = str(error)
    return able, unable


def _times(bytes_: int, seconds: float) -> int:
    """How often to repeat messages of so many bytes, to take about that long on a GPU."""
    return max(3, int(seconds / (2e-5 + bytes_ / 2e10)))


def pingpong_on_device(
    comm: Any,
    device: str,
    rounds: int,
    sizes: tuple[int, ...] = (8, 512, 4096, 32768, 262144, 2097152, 16777216),
    seconds: float = 0.02,
) -> dict[str, Any]:
    """One-way seconds of messages of 8 B to 16 MiB between the GPUs of ranks 0 and 1, by each transport; MPI_Send/Recv of host memory beside.

    Roots on rank 0, leaves on rank 1: contiguous (neither packed nor unpacked), and at permuted places with sums on the way back.
    """
    core, queue = as_communicator(comm), Queue(device)
    able, unable = _transports(comm, queue)
    replace, total = _core.reduce_op("replace"), _core.reduce_op("sum")
    rng = np.random.default_rng(0)
    cases = []
    for size in steps("pingpong", sizes, comm):
        n = size // 8
        order = rng.permutation(n)
        roots, here = (n if comm.rank == 0 else 0), comm.rank == 1
        forests: dict[str, tuple[QueuedForest, int]] = {}
        for t in able:
            plain = StarForest(
                comm, roots, None, np.column_stack([0 * order, np.arange(n)]) if here else [], transport=t
            )
            mixed = StarForest(comm, roots, None, np.column_stack([0 * order, order]) if here else [], transport=t)
            forests |= {t: (plain.on(queue), replace), f"{t} permuted sum": (mixed.on(queue), total)}
        repeats = _times(size, seconds)
        times: dict[str, list[float]] = {"raw MPI, host": []}
        for _ in range(rounds + 1):
            times["raw MPI, host"].append(_core.time_raw_pingpong(core, size, repeats))
            for name, (forest, op) in forests.items():
                times.setdefault(name, []).append(forest._h.time_pingpong(1, op, repeats))
        cases.append({"bytes": size, "repeats": repeats, "seconds": {k: v[1:] for k, v in times.items()}})
    return {
        "device": _core.gpu_state()["device"],
        "shared": bool(_core.ranks_share_a_gpu(core)),
        "unable": unable,
        "cases": cases,
    }


def print_pingpong(r: dict[str, Any]) -> None:
    """Print what pingpong_on_device() measured."""
    print(f"messages between GPUs, {r['device']}{', which the ranks share' if r['shared'] else ''}")
    for transport, why in r["unable"].items():
        print(f"  not by {transport}: {why}")
    kinds = list(dict.fromkeys(k for c in r["cases"] for k in c["seconds"]))
    print_table(
        "one way between two ranks",
        ["microseconds", *(in_bytes(c["bytes"]) for c in r["cases"])],
        [[k, *(microseconds(c["seconds"][k]) for c in r["cases"])] for k in kinds],
    )


def unpack_on_device(
    comm: Any,
    device: str,
    rounds: int,
    sizes: tuple[int, ...] = (65536, 1048576, 67108864),
    seconds: float = 0.02,
) -> dict[str, Any]:
    """Broadcasts to leaves in a block, every second place and at random places, that replace, add or take the maximum, interleaved.

    ``own``: of each rank to itself, so packing and taking in alone; their bytes a second over a copy's. The others between ranks 0 and 1.
    """
    queue = Queue(device)
    able, unable = _transports(comm, queue)
    cases = []
    for size in steps("unpack", sizes, comm):
        n = size // 8
        c, d = vector_of(n, queue, 1.0), vector_of(n, queue, 0.0)
        places = {"block": np.arange(n), "strided": 2 * np.arange(n), "random": np.random.default_rng(0).permutation(n)}
        repeats = _times(size, seconds)
        for pattern, leaves in places.items():
            here = comm.rank == 1
            pairs = np.column_stack([0 * leaves, np.arange(n)])
            forests = {"own": StarForest(None, n, leaves, pairs).on(queue)}
            for t in able:
                sf = StarForest(comm, 0 if here else n, leaves if here else [], pairs if here else [], transport=t)
                forests[t] = sf.on(queue)
            times: dict[str, list[float]] = {"copy": []}
            for _ in range(rounds + 1):
                times["copy"] += seconds_of(queue, partial(d.copy_from, c), 1)
                for name, forest in forests.items():
                    for op in ("replace", "sum", "max"):
                        took = forest._h.time_exchange(1, _core.reduce_op(op), repeats)
                        times.setdefault(f"{name} {op}", []).append(comm.bcast(took, root=1))
            kept = {k: v[1:] for k, v in times.items()}
            # taken in where they lie: value, place, its two numbers and the old value read, the new one written
            least = n * (8 + 12 + 16)
            copy = statistics.median(kept["copy"]) / (16 * n)
            cases.append(
                {
                    "pattern": pattern,
                    "bytes": size,
                    "repeats": repeats,
                    "seconds": kept,
                    "own_sum_over_copy": least * copy / statistics.median(kept["own sum"]),
                }
            )
    return {"device": _core.gpu_state()["device"], "unable": unable, "cases": cases}


def print_unpack(r: dict[str, Any]) -> None:
    """Print what unpack_on_device() measured."""
    print(f"star forests on {r['device']}")
    for transport, why in r["unable"].items():
        print(f"  not by {transport}: {why}")
    kinds = list(dict.fromkeys(k for c in r["cases"] for k in c["seconds"]))
    print_table(
        "a broadcast to leaves, microseconds; a rank's own sum by its bytes over a copy's rate",
        ["leaves", "size", *kinds, "own sum / copy"],
        [
            [
                c["pattern"],
                in_bytes(c["bytes"]),
                *(microseconds(c["seconds"][k]) for k in kinds),
                f"{c['own_sum_over_copy']:.2f}",
            ]
            for c in r["cases"]
        ],
    )
