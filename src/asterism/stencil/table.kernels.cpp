#include "asterism/stencil/table.kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace asterism::stencil::kernel {

using i64 = std::int64_t;
using Three = std::array<int, 3>;

/// What is read of a grid around a brick, as one array: points from `low` to `high` relative to the brick's first one.
struct Box {
  Three low, high;
  bool used = false;
  i64 length(int axis) const { return high[std::size_t(axis)] - low[std::size_t(axis)] + 1; }
  i64 points() const { return length(0) * length(1) * length(2); }
  i64 place(int p, i64 r, i64 k) const { return ((p - low[0]) * length(1) + r - low[1]) * length(2) + k - low[2]; }
  void take(Three const& from, Three const& to) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      low[axis] = used ? std::min(low[axis], from[axis]) : from[axis];
      high[axis] = used ? std::max(high[axis], to[axis]) : to[axis];
    }
    used = true;
  }
};

inline int floor_div(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// f(x), a function of the standard library.
template <class F, class R>
R function(F const& f, R x) {
  return f(x);
}
template <class F, class R>
Complex<R> function(F const& f, Complex<R> z) {
  auto const r = f(std::complex<R>(z.re, z.im == 0 ? R(0) : z.im));  // the sign of a zero decides nothing
  return {r.real(), r.imag()};
}

/// What has an order is real, also where T is complex.
template <class T>
T plain(Op op, T x, T y, T z) {
  switch (op) {
    case Op::add: return x + y;
    case Op::multiply: return x * y;
    case Op::divide: return x / y;
    case Op::absolute: return T(magnitude(x));
    case Op::root: return function([](auto v) { return std::sqrt(v); }, x);
    case Op::exponential: return function([](auto v) { return std::exp(v); }, x);
    case Op::logarithm: return function([](auto v) { return std::log(v); }, x);
    case Op::sine: return function([](auto v) { return std::sin(v); }, x);
    case Op::cosine: return function([](auto v) { return std::cos(v); }, x);
    case Op::minimum: return real(x) < real(y) || x != x ? x : y;
    case Op::maximum: return real(x) > real(y) || x != x ? x : y;
    case Op::where: return x != T(0) ? y : z;
    case Op::less: return T(real(x) < real(y));
    case Op::less_equal: return T(real(x) <= real(y));
    case Op::greater: return T(real(x) > real(y));
    case Op::greater_equal: return T(real(x) >= real(y));
    case Op::equal: return T(x == y);
    case Op::not_equal: return T(x != y);
    case Op::both: return T(x != T(0) && y != T(0));
    case Op::either: return T(x != T(0) || y != T(0));
    default: return T(x == T(0));
  }
}

template <class T>
struct Runner {
  Table const& t;
  Arguments const& a;
  Box near, far;     ///< of all grids that are read at a point, and of those of the finer space
  i64 pitch, width;  ///< registers: values between rows, and of a plane
  std::vector<T> scalars, registers, near_values, far_values;
  std::vector<int> near_place, far_place;                ///< of each grid: which part of these, or -1
  static constexpr int parts = is_complex_v<T> ? 2 : 1;  ///< of a reduction's result
  std::vector<double> totals;
  i64 extent[3], origin[3], id = 0;

  Runner(Table const& table, Arguments const& arguments) : t(table), a(arguments) {
    auto const& b = t.brick;
    near_place.assign(std::size_t(t.grids), -1);
    far_place = near_place;
    int nears = 0, fars = 0;
    for (auto const& term : t.terms) {
      if (term.grid < 0) continue;
      near.take(term.at, {b[0] - 1 + term.at[0], b[1] - 1 + term.at[1], b[2] - 1 + term.at[2]});
      auto& place = near_place[std::size_t(term.grid)];
      if (place < 0) place = nears++;
    }
    for (auto const& i : t.code) {
      if (i.op != Op::fine) continue;
      Three to;
      for (int axis = 0; axis < 3; ++axis) to[std::size_t(axis)] = 2 * (b[std::size_t(axis)] - 1) + i.at[std::size_t(axis)];
      far.take(i.at, to);
      auto& place = far_place[std::size_t(i.a)];
      if (place < 0) place = fars++;
    }
    pitch = near.used ? near.length(2) : b[2];
    width = (b[1] - 1) * pitch + b[2];
    if (near.used) near_values.resize(std::size_t(nears * near.points()));
    if (far.used) far_values.resize(std::size_t(fars * far.points()));
    registers.resize(std::size_t(t.registers * width));
    for (int axis = 0; axis < 3; ++axis) extent[axis] = axis < t.missing ? 1 : (t.fine ? a.fine_extent : a.extent)[axis - t.missing];
    for (auto const& s : t.scalars) {
      auto const of = [&](int m) { return m >= 0 && std::size_t(m) < scalars.size() ? scalars[std::size_t(m)] : T(0); };
      scalars.push_back(s.op == Op::number     ? from_complex<T>(s.value)
                        : s.op == Op::constant ? static_cast<T const*>(a.constants)[s.a]
                                               : plain(s.op, of(s.a), of(s.b), of(s.c)));
    }
    for (auto r : t.reductions) {
      totals.push_back(r == Reduction::sum ? 0.0 : (r == Reduction::maximum ? -1 : 1) * std::numeric_limits<double>::infinity());
      if (is_complex_v<T>) totals.push_back(totals.back());
    }
  }

  T* brick_of(int grid, long owned, long number) const {
    i64 const points = i64(t.brick[0]) * t.brick[1] * t.brick[2];
    if (a.slots && a.slots[grid]) return static_cast<T*>(a.grids[grid]) + a.slots[grid][number] * points;
    return number < owned ? static_cast<T*>(a.grids[grid]) + number * points : static_cast<T*>(a.ghosts[grid]) + (number - owned) * points;
  }
  /// The brick at a distance, by steps to neighbours.
  long stepped(int const* neighbours, long from, Three by) const {
    int const d = 3 - t.missing, all = d == 3 ? 27 : d == 2 ? 9 : 3;
    while (by[0] || by[1] || by[2]) {
      int number = 0;
      for (auto axis = std::size_t(t.missing); axis < 3; ++axis) {
        int const step = std::clamp(by[axis], -1, 1);
        number = 3 * number + step + 1;
        by[axis] -= step;
      }
      from = neighbours[all * from + number];
    }
    return from;
  }
  long child(Three const& c) const {
    int number = 0;
    for (auto axis = std::size_t(t.missing); axis < 3; ++axis) number = 2 * number + c[axis];
    return a.children[(i64(1) << (3 - t.missing)) * id + number];
  }

  void gather(Box const& box, int grid, bool finer, T* out) const {
    auto const& b = t.brick;
    Three first, last;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      first[axis] = floor_div(box.low[axis], b[axis]);
      last[axis] = floor_div(box.high[axis], b[axis]);
    }
    Three c;
    for (c[0] = first[0]; c[0] <= last[0]; ++c[0])
      for (c[1] = first[1]; c[1] <= last[1]; ++c[1])
        for (c[2] = first[2]; c[2] <= last[2]; ++c[2]) {
          T const* from = nullptr;
          if (finer) {
            Three inside, rest;
            for (std::size_t axis = 0; axis < 3; ++axis) {
              inside[axis] = std::clamp(c[axis], 0, 1);
              rest[axis] = c[axis] - inside[axis];
            }
            from = brick_of(grid, a.fine_owned, stepped(a.fine_neighbours, child(inside), rest));
          } else {
            from = brick_of(grid, a.owned, stepped(a.neighbours, id, c));
          }
          int begin[3], end[3];
          for (std::size_t axis = 0; axis < 3; ++axis) {
            begin[axis] = std::max(box.low[axis], c[axis] * b[axis]);
            end[axis] = std::min(box.high[axis], c[axis] * b[axis] + b[axis] - 1);
          }
          auto const count = std::size_t(end[2] - begin[2] + 1);
          for (int p = begin[0]; p <= end[0]; ++p)
            for (int r = begin[1]; r <= end[1]; ++r)
              std::memcpy(out + box.place(p, r, begin[2]),
                          from + ((p - c[0] * b[0]) * b[1] + r - c[1] * b[1]) * b[2] + begin[2] - c[2] * b[2], count * sizeof(T));
        }
  }

  T* reg(int number) { return registers.data() + number * width; }

  template <class F>
  void each(Instruction const& i, F const& f) {
    T* const out = reg(i.out);
    T const *const x = reg(i.a), *const y = reg(i.b);
    i64 const n = width;
#pragma omp simd
    for (i64 m = 0; m < n; ++m) out[m] = f(x[m], y[m]);
  }

  void sum(Instruction const& i, int plane) {
    T* const out = reg(i.out);
    i64 const n = width;
    for (int m = 0; m < i.count; ++m) {
      auto const& term = t.terms[std::size_t(i.first + m)];
      T const c = scalars[std::size_t(term.scalar)];
      T const* const x = term.grid < 0 ? reg(term.reg)
                                       : near_values.data() + near_place[std::size_t(term.grid)] * near.points() +
                                             near.place(plane + term.at[0], term.at[1], term.at[2]);
      if (m == 0) {
#pragma omp simd
        for (i64 l = 0; l < n; ++l) out[l] = c * x[l];
      } else {
#pragma omp simd
        for (i64 l = 0; l < n; ++l) out[l] += c * x[l];
      }
    }
  }

  void whole_number(Instruction const& i, int plane) {
    auto const& w = t.wholes[std::size_t(i.first)];
    i64 base = w.add + w.f[0] * (origin[0] + plane);
    for (std::size_t axis = 0; axis < 3; ++axis) base += w.n[axis] * extent[axis] + (axis ? w.f[axis] * origin[axis] : 0);
    for (int r = 0; r < t.brick[1]; ++r)
      for (int k = 0; k < t.brick[2]; ++k) {
        i64 const value = base + w.f[1] * r + w.f[2] * k;
        T& out = reg(i.out)[r * pitch + k];
        out = i.op == Op::index       ? T(value)
              : i.op == Op::remainder ? T((value % i.b + i.b) % i.b)
                                      : T(plain<double>(Op(i.b), double(value), 0, 0));
      }
  }

  void fine(Instruction const& i, int plane) {
    T const* const x = far_values.data() + far_place[std::size_t(i.a)] * far.points();
    bool const one_row = t.missing == 2;
    for (int r = 0; r < t.brick[1]; ++r)
      for (int k = 0; k < t.brick[2]; ++k)
        reg(i.out)[r * pitch + k] = x[far.place(2 * plane + i.at[0], (one_row ? 0 : 2 * r) + i.at[1], 2 * k + i.at[2])];
  }

  void execute(Instruction const& i, int plane) {
    switch (i.op) {
      case Op::copy: std::fill_n(reg(i.out), width, scalars[std::size_t(i.a)]); break;
      case Op::sum: sum(i, plane); break;
      case Op::fine: fine(i, plane); break;
      case Op::index:
      case Op::remainder:
      case Op::test: whole_number(i, plane); break;
      case Op::add: each(i, [](T x, T y) { return x + y; }); break;
      case Op::multiply: each(i, [](T x, T y) { return x * y; }); break;
      case Op::divide: each(i, [](T x, T y) { return x / y; }); break;
      case Op::where: {
        T *const out = reg(i.out), *const x = reg(i.a), *const y = reg(i.b), *const z = reg(i.c);
        i64 const n = width;
#pragma omp simd
        for (i64 m = 0; m < n; ++m) out[m] = x[m] != T(0) ? y[m] : z[m];
        break;
      }
      default: each(i, [op = i.op](T x, T y) { return plain(op, x, y, T(0)); });
    }
  }

  void store(TableStore const& s, int plane) {
    T const* const from = reg(s.reg);
    auto const& b = t.brick;
    if (s.grid < 0) {
      auto const kind = t.reductions[std::size_t(s.slot)];
      double* const part = totals.data() + parts * s.slot;
      double total = part[0];
      if (s.stride * (origin[0] + plane) + s.parity[0] >= extent[0]) return;
      for (int r = 0; r < b[1]; ++r)
        for (int k = 0; k < b[2]; ++k) {
          if (s.stride * (origin[1] + r) + s.parity[1] >= extent[1] || s.stride * (origin[2] + k) + s.parity[2] >= extent[2]) continue;
          auto const x = double(real(from[r * pitch + k]));
          if (is_complex_v<T> && kind == Reduction::sum) part[1] += double(imag(from[r * pitch + k]));
          if (kind == Reduction::sum) total += x;
          else if (x != x || (kind == Reduction::maximum ? x > total : x < total)) total = x;
        }
      part[0] = total;
      return;
    }
    for (int r = 0; r < b[1]; ++r) {
      if (s.stride == 1) {
        std::memcpy(brick_of(s.grid, a.owned, id) + (plane * b[1] + r) * b[2], from + r * pitch, std::size_t(b[2]) * sizeof(T));
        continue;
      }
      int const p = t.missing > 0 ? 0 : 2 * plane + s.parity[0], q = t.missing > 1 ? 0 : 2 * r + s.parity[1];
      for (int half = 0; half < 2; ++half) {
        Three const c = {p / b[0], q / b[1], half};
        if (outside(c)) continue;
        T* const to = brick_of(s.grid, a.fine_owned, child(c)) + (p % b[0] * b[1] + q % b[1]) * b[2];
        int const begin = half * b[2];
        for (int k = 0; k < b[2]; ++k)
          if (int const at = 2 * k + s.parity[2] - begin; at >= 0 && at < b[2]) to[at] = from[r * pitch + k];
      }
    }
  }
  /// Whether a child brick has no point of the domain.
  bool outside(Three const& c) const {
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (2 * origin[axis] + c[axis] * t.brick[axis] >= extent[axis]) return true;
    return false;
  }

  /// Zeros in the padding.
  void clear(T* to, i64 n0, i64 n1, i64 n2) const {
    for (int p = 0; p < t.brick[0]; ++p)
      for (int r = 0; r < t.brick[1]; ++r)
        for (int k = 0; k < t.brick[2]; ++k)
          if (p >= n0 || r >= n1 || k >= n2) to[(p * t.brick[1] + r) * t.brick[2] + k] = T(0);
  }
  void clear_padding() {
    for (auto const& s : t.stores) {
      if (s.grid < 0 || s.parity != Three{}) continue;
      if (s.stride == 1) {
        clear(brick_of(s.grid, a.owned, id), extent[0] - origin[0], extent[1] - origin[1], extent[2] - origin[2]);
        continue;
      }
      Three c;
      for (c[0] = 0; c[0] <= (t.missing < 1); ++c[0])
        for (c[1] = 0; c[1] <= (t.missing < 2); ++c[1])
          for (c[2] = 0; c[2] <= 1; ++c[2])
            if (!outside(c)) {
              i64 left[3];
              for (std::size_t axis = 0; axis < 3; ++axis) left[axis] = extent[axis] - 2 * origin[axis] - c[axis] * t.brick[axis];
              clear(brick_of(s.grid, a.fine_owned, child(c)), left[0], left[1], left[2]);
            }
    }
  }

  void run() {
    int const d = 3 - t.missing;
    i64 const stride = t.fine ? 2 : 1;
    for (long m = 0; m < a.bricks; ++m) {
      id = a.visit ? a.visit[m] : m;
      bool whole = true;
      for (int axis = 0; axis < 3; ++axis) {
        origin[axis] = axis < t.missing ? 0 : a.origin[d * id + axis - t.missing];
        whole = whole && (axis < t.missing || stride * (origin[axis] + t.brick[std::size_t(axis)]) <= extent[axis]);
      }
      for (int grid = 0; grid < t.grids; ++grid) {
        if (int const p = near_place[std::size_t(grid)]; p >= 0) gather(near, grid, false, near_values.data() + p * near.points());
        if (int const p = far_place[std::size_t(grid)]; p >= 0) gather(far, grid, true, far_values.data() + p * far.points());
      }
      for (int plane = a.first; plane < a.last; ++plane) {
        for (auto const& i : t.code) execute(i, plane);
        for (auto const& s : t.stores) store(s, plane);
      }
      if (!whole) clear_padding();
    }
    for (std::size_t r = 0; r < totals.size(); ++r) {
      double &out = a.reductions[r], x = totals[r];
      auto const kind = t.reductions[r / std::size_t(parts)];
      if (kind == Reduction::sum) out += x;
      else if (x != x || (kind == Reduction::maximum ? x > out : x < out)) out = x;
    }
  }
};

template <class T>
void run_table(Table const& table, Arguments const& a) {
  Runner<T>(table, a).run();
}

#define INSTANTIATE(T) template void run_table<T>(Table const&, Arguments const&);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::stencil::kernel
