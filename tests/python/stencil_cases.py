"""Random stencils: what the tests of the stencil compiler compare with the interpreter."""

import numpy as np

import asterism as am
from asterism import stencil as st
from asterism.stencil.codegen.sources import native_target

BRICKS = {
    1: [(8,), (4,), (5,), (16,)],
    2: [(8, 8), (4, 4), (3, 8), (2, 12)],
    3: [(8, 8, 8), (4, 4, 4), (2, 4, 8), (3, 2, 5)],
}
TARGETS = [t for t in ("generic", "avx2", "avx512") if t in ("generic", native_target()) or native_target() == "avx512"]


class Case:
    """A random stencil with arrays, constants, and everything that a kernel is made for; of complex numbers too."""

    def __init__(self, seed, of_complex=False):
        self.of_complex = of_complex
        self.rng = rng = np.random.default_rng(seed)
        self.d = d = int(rng.integers(1, 4))
        self.radius = int(rng.integers(0, 5))
        self.at = st.indices(d)
        self.brick = BRICKS[d][rng.integers(len(BRICKS[d]))]
        self.target = TARGETS[rng.integers(len(TARGETS))]
        self.dtype = np.float64 if rng.random() < 0.7 else np.float32
        if of_complex:
            self.dtype = np.complex128 if self.dtype == np.float64 else np.complex64
        self.periodic = tuple(bool(p) for p in rng.random(d) < 0.4)
        self.space = str(rng.choice(["one", "one", "one", "coarse", "fine"]))
        if self.space != "one":
            self.brick = tuple(n + n % 2 for n in self.brick)
        blocks = rng.integers(1, 4 if d < 3 else 3, d)
        self.shape = tuple(
            int(n * b) if p else max(1, int(n * b - rng.integers(0, b)))
            for n, b, p in zip(blocks, self.brick, self.periodic, strict=True)
        )
        twice = tuple(2 * n for n in self.shape)
        mine, other = (twice, self.shape) if self.space == "fine" else (self.shape, twice)
        self.points = mine
        self.grids = {"u": mine, "c": mine, "x": mine}
        if self.space != "one":
            self.grids["z"] = other
        self.stencil = self.statements()
        self.arrays = {
            n: rng.standard_normal(s).astype(self.dtype) for n, s in self.grids.items() if n in self.stencil.facts.grids
        }
        self.constants = {n: float(rng.uniform(0.5, 2)) for n, _ in self.stencil.facts.constants}
        if of_complex:
            self.arrays = {
                n: a + self.dtype(1j) * rng.standard_normal(a.shape).astype(a.real.dtype)
                for n, a in self.arrays.items()
            }
            self.constants = {n: v + 1j * float(rng.uniform(-1, 1)) for n, v in self.constants.items()}

    def ordered(self, value):
        """What can be compared."""
        return abs(value) if self.of_complex else value

    def ref(self, name):
        o = self.rng.integers(-self.radius, self.radius + 1, self.d)
        if name == "z":
            return self.elsewhere(o)
        return st.grid(name, self.d)(*(i + int(s) for i, s in zip(self.at, o, strict=True)))

    def elsewhere(self, o):
        z = st.grid("z", self.d)
        if self.space == "coarse":
            return z(*(2 * i + int(s) for i, s in zip(self.at, o, strict=True)))
        return z(*((i + int(s)) // 2 for i, s in zip(self.at, o, strict=True)))

    def linear(self):
        """A sum with symmetric or random coefficients."""
        rng, names = self.rng, [n for n in self.grids if n != "x"]
        name = str(rng.choice(names))
        weights = [*rng.uniform(-1, 1, 2), st.constant("alpha"), st.constant("beta") / 3.0 + 1.0, 1.0, -1.0]
        if self.of_complex:
            weights[0] = weights[0] + 0.5j
        if rng.random() < 0.5 and name != "z":  # a whole box or star: planes and columns with the same weights
            r, total = min(self.radius, 1 if self.d == 3 else 2), 0.0
            for o in np.ndindex((2 * r + 1,) * self.d):
                distance = tuple(sorted(abs(v - r) for v in o))
                w = weights[sum(distance) % len(weights)]
                total = total + w * st.grid(name, self.d)(*(i + (v - r) for i, v in zip(self.at, o, strict=True)))
            return total
        total = self.ref(name)
        for _ in range(rng.integers(0, 12)):
            w = weights[rng.integers(len(weights))]
            total = total + w * self.ref(str(rng.choice(names)))
        return total * float(rng.uniform(0.5, 1)) if rng.random() < 0.5 else total

    def condition(self):
        rng, a = self.rng, int(self.rng.integers(self.d))
        i, c = self.at[a], int(self.rng.integers(0, 4))
        kinds = [
            i == c, i < c, i >= c, c != i, i == i.extent - 1 - c, i > i.extent - c, i.extent - 1 - c <= i,
            sum(self.at[1:], self.at[0]) % 2 == 0, (2 * i - 5) % 3 == 1, i + self.at[-1] <= 7,
            self.ordered(self.ref("u")) > 0.1, self.ordered(self.ref("c")) <= self.ordered(self.ref("u")),
            self.ordered(st.constant("alpha")) > self.ordered(st.constant("beta")),
        ]  # fmt: skip
        if self.of_complex:
            kinds[0] = self.ref("c") == st.constant("alpha")
        first = kinds[rng.integers(len(kinds))]
        second = kinds[rng.integers(len(kinds))]
        return [first, first & second, first | ~second, ~first][rng.integers(4)]

    def value(self, depth=0):
        kind = self.rng.integers(10 if depth < 3 else 3)
        if kind < 3:
            return self.linear()
        if kind == 3:
            return self.ref("c") * (self.value(depth + 1) - self.ref("u"))
        if kind == 4:
            return st.where(self.condition(), self.value(depth + 1), self.value(depth + 1))
        if kind == 5:
            return st.minimum(self.ordered(self.value(depth + 1)), abs(self.linear()))
        if kind == 6:
            above, below = self.value(depth + 1), 2.0 + abs(self.ref("c"))
            if self.of_complex:
                below = below + self.ref("c") * 0.5j + st.sqrt(self.ref("c"))
            return above / below + st.sqrt(abs(self.ref("u")))
        if kind == 7:
            shared = self.linear()
            number = 0.1 * self.at[self.rng.integers(self.d)] + 0.5 * ((self.at[0] + 1) % 4)
            return shared + number + st.sin(0.5 * shared) * st.cos(number - 0.1 * shared)
        if kind == 8:
            shared = self.linear()
            small = st.exp(-abs(shared)) * st.log(st.constant("alpha") + 3.0 + abs(shared))
            return shared * st.constant("alpha") + st.maximum(self.ordered(shared), 0.25) - shared + small
        return self.value(depth + 1) + self.linear() * self.linear() if depth < 2 else self.linear() ** 2

    def statements(self):
        rng, parts = self.rng, []
        outputs = [n for n in ("y", "w") if rng.random() < 0.6] or ["y"]
        for name in outputs:
            extra = st.grid(outputs[0], self.d)(*self.at) if name == "w" and len(outputs) == 2 else 0.0
            parts.append(st.assign(st.grid(name, self.d)(*self.at), self.value() + extra))
        if rng.random() < 0.3:  # in place
            x = st.grid("x", self.d)(*self.at)
            parts.append(st.assign(x, x + 0.5 * self.linear() * st.grid(outputs[0], self.d)(*self.at)))
        if rng.random() < 0.4:
            parts.append(st.reduce("sum", "total", self.value(2)))
            parts.append(
                st.reduce(
                    str(rng.choice(["max", "min"])), "extreme", self.ordered(st.grid(outputs[0], self.d)(*self.at))
                )
            )
        return st.fuse(*parts)

    def compare(self, kernel=None):
        """The largest difference from the interpreter, in units of what rounding explains."""
        given = {**self.arrays, **self.constants}
        kernel = kernel or st.compile(
            self.stencil, self.points, self.periodic, target=self.target, brick=self.brick, dtype=self.dtype
        )
        got = kernel(**given)
        wide_dtype = np.complex128 if self.of_complex else np.float64
        wide = self.stencil.interpret(self.periodic, wide_dtype, **given)
        want = self.stencil.interpret(self.periodic, self.dtype, **given)
        got = got if isinstance(got, dict) else {self.stencil.facts.outputs[0]: got}
        assert got.keys() == want.keys() == wide.keys()
        eps, worst = float(np.finfo(self.dtype).eps), 0.0
        for name, right in wide.items():
            assert np.isfinite(got[name]).all() and np.isfinite(right).all(), name
            scale = max(1.0, float(np.abs(right).max())) * (np.prod(self.points) if name == "total" else 1)
            # where a comparison hangs on rounding, two right answers differ: then the interpreter's own precisions do so too
            error = np.minimum(np.abs(got[name] - right), np.abs(np.asarray(got[name], wide_dtype) - want[name]))
            worst = max(worst, float(np.max(error)) / (eps * scale))
        return worst


class Linear:
    """A random stencil that is linear in u, with coefficients of every kind; of complex numbers too."""

    def __init__(self, seed, small=True, of_complex=False):
        self.of_complex = of_complex
        self.rng = rng = np.random.default_rng(seed)
        self.d = d = int(rng.integers(1, 4))
        self.at = st.indices(d)
        self.u, self.o, self.c = (st.grid(n, d) for n in "uoc")
        self.reach = 2
        value = self.sum()
        for _ in range(rng.integers(0, 3)):
            value = (
                value + self.coefficient() * self.sum()
                if rng.random() < 0.6
                else st.where(self.condition(), value, self.sum())
            )
        self.stencil = st.assign(self.o(*self.at), value / (2.0 + st.constant("k")))
        self.brick = BRICKS[d][rng.integers(len(BRICKS[d]))]
        self.periodic = tuple(bool(p) for p in rng.random(d) < 0.5)
        most = {1: 12, 2: 6, 3: 4}[d]
        self.shape = tuple(int(n) for n in rng.integers(self.reach if small else 1, most, d))
        if not small:
            self.shape = tuple(int(b * rng.integers(1, 3)) for b in self.brick)
            self.periodic = tuple(p and b >= self.reach for p, b in zip(self.periodic, self.brick, strict=True))
        self.given = {"k": float(rng.uniform(0, 1)) + (0.7j if of_complex else 0)}

    def place(self):
        return [
            i + int(s) for i, s in zip(self.at, self.rng.integers(-self.reach, self.reach + 1, self.d), strict=True)
        ]

    def sum(self):
        total = float(self.rng.uniform(-1, 1)) * self.u(*self.place())
        for _ in range(self.rng.integers(0, 4)):
            w = [self.coefficient, lambda: float(self.rng.uniform(-1, 1)), lambda: st.constant("k")][
                self.rng.integers(3)
            ]
            term = w() * self.u(*self.place())
            total = total + term if self.rng.random() < 0.7 else total - term
        return total

    def coefficient(self):
        rng, i = self.rng, self.at[self.rng.integers(self.d)]
        return [
            lambda: self.c(*self.place()),
            lambda: 1.0 / (0.5 + abs(self.c(*self.place()))),
            lambda: st.sqrt(abs(self.c(*self.at))) - self.c(*self.place()),
            lambda: 0.1 * i + 0.2 * ((i + self.at[0]) % 3),
            lambda: st.where(self.condition(), 0.5 + (0.5j if self.of_complex else 0), self.c(*self.place())),
        ][rng.integers(5)]()

    def condition(self):
        rng, i, j = self.rng, self.at[self.rng.integers(self.d)], self.at[-1]
        first = [
            i == int(rng.integers(0, 3)), i == i.extent - 1 - int(rng.integers(0, 3)), i + j <= 4, i - 1 < j.extent - j,
            abs(self.c(*self.place())) > 0.7 if self.of_complex else self.c(*self.place()) > 0, (i + 2 * j) % 3 == 1,
        ][rng.integers(6)]  # fmt: skip
        return first if rng.random() < 0.7 else ~first

    def arrays(self, stencil):
        return {n: self.rng.standard_normal(self.shape) for n in stencil.facts.inputs}

    def constants(self, stencil):
        return {n: self.given[n] for n, _ in stencil.facts.constants}


class OnBricks(Linear):
    """An operator of a random linear stencil, one of four dtypes by the seed, with values of a vector and the interpreter's product."""

    def __init__(self, seed, comm):
        of_complex = seed % 2 == 1
        super().__init__(seed, small=False, of_complex=of_complex)
        self.dtype = [np.float64, np.complex128, np.float32, np.complex64][seed % 4]
        self.wide = [np.float64, np.complex128][of_complex]
        axes = zip(self.shape, self.periodic, self.brick, strict=True)
        self.shape = tuple(n if p else max(1, n - int(self.rng.integers(0, b))) for n, p, b in axes)
        self.fits = all(self.reach <= b for b in self.brick)
        if not self.fits:
            return
        self.given = self.constants(self.stencil)
        self.x, c = (self.values() for _ in range(2))
        if "c" in self.stencil.facts.inputs:
            self.given["c"] = c
        self.L = am.stencil.operator(
            self.stencil, self.shape, self.periodic, comm, brick=self.brick, dtype=self.dtype, **self.given
        )
        self.want = self.stencil.interpret(self.periodic, self.wide, u=self.x, **self.given)["o"]
        self.rounding = np.finfo(self.dtype).eps * max(1.0, np.abs(self.want).max())

    def values(self):
        v = self.rng.standard_normal(self.shape) + 1j * self.of_complex * self.rng.standard_normal(self.shape)
        return (v if self.of_complex else v.real).astype(self.dtype)


def five_points():
    """Return the Laplacian of the plane, with a constant at the point itself."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    return st.assign(out(i, j), u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - st.constant("c", 4.0) * u(i, j))
