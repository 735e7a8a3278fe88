"""Writes small files of every format and variant as first inputs of the fuzzer: python tests/fuzz/seeds.py FOLDER."""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

import asterism as am

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)


def seed(name: str, kinds: str, content: bytes) -> None:
    for kind in kinds:
        (out / f"{name}-{kind}").write_bytes(kind.encode() + content)


rng = np.random.default_rng(0)
S = sp.random_array((7, 7), density=0.3, rng=rng).tocsr() + sp.eye_array(7)
symmetric = (S + S.T).tocsr()
for name, matrix, more in (
    ("real", S, {}),
    ("complex", S * (1 + 2j), {}),
    ("symmetric", symmetric, {"symmetry": "symmetric"}),
    ("hermitian", (symmetric + 1j * (S - S.T)).tocsr(), {"symmetry": "hermitian"}),
    ("skew", (S - S.T).tocsr(), {"symmetry": "skew-symmetric"}),
    ("pattern", S, {"field": "pattern"}),
    ("integer", (S * 10).astype(int), {}),
    ("array", S.toarray(), {}),
    ("column", np.arange(7.0)[:, None], {}),
):
    text = io.BytesIO()
    scipy.io.mmwrite(text, matrix, comment="a comment", **more)
    seed(f"mm-{name}", "mv", text.getvalue())
for kind in ("RUA", "CUA", "RSA", "PUA"):
    complex_values = kind[0] == "C"
    low = sp.tril(S).tocsc() if kind[1] == "S" else S.tocsc()
    values = [] if kind[0] == "P" else [v for x in low.data for v in ((x, 2 * x) if complex_values else (x,))]
    lines = {
        "pointers": [f"{p + 1:8d}" for p in low.indptr],
        "rows": [f"{i + 1:8d}" for i in low.indices],
        "values": [f"{v:20.12E}" for v in values],
    }
    per_line = {"pointers": 10, "rows": 10, "values": 4}
    cards = {k: ["".join(v[i : i + per_line[k]]) for i in range(0, len(v), per_line[k])] for k, v in lines.items()}
    counts = [len(cards[k]) for k in ("pointers", "rows", "values")]
    head = f"{'a title':72s}{'KEY':8s}\n{sum(counts):14d}{counts[0]:14d}{counts[1]:14d}{counts[2]:14d}{0:14d}\n"
    head += f"{kind:14s}{7:14d}{7:14d}{low.nnz:14d}{0:14d}\n{'(10I8)':16s}{'(10I8)':16s}{'(4E20.12)':20s}\n"
    text = head + "\n".join(line for k in cards for line in cards[k]) + "\n"
    seed(f"hb-{kind}", "hr", text.encode())
with tempfile.TemporaryDirectory() as folder:
    A = am.Matrix.from_scipy(S)
    for name, write in (
        ("petsc-matrix.petsc", lambda p: am.write_matrix(p, A)),
        ("petsc-complex.petsc", lambda p: am.write_matrix(p, A.astype("complex128"))),
        ("petsc-vector.petsc", lambda p: am.write_vector(p, np.arange(7.0))),
        ("archive.ast", lambda p: am.save(p, A=A, b=np.arange(7.0), note="text")),
    ):
        write(Path(folder) / name)
        seed(name, "a" if name.endswith("ast") else "pq", (Path(folder) / name).read_bytes())
print(f"{len(list(out.iterdir()))} inputs in {out}")
