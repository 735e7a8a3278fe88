#include "asterism/grid/bricks/brick_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using kernel::Axis;
using Few = Axis::Few;
using Several = Axis::Several;
using la::Vector;

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

/// f(x, y) for each column of both, which are copied if there are several.
template <class F>
void each_column(Vector const& x, Vector& y, F const& f) {
  if (x.columns() == 1) return f(x, y);
  for (i64 j = 0; j < x.columns(); ++j) {
    Vector of_y = column_of(y, j);
    f(column_of(x, j), of_y);
    set_column(of_y, j, y);
  }
}

void check(la::Operator const& P, Vector const& fine, Vector const& coarse, char const* what) {
  require_layout(fine, P.range(), P.dtype(), what);
  require_layout(coarse, P.domain(), P.dtype(), what);
  ASTERISM_REQUIRE(fine.columns() == coarse.columns(), shape, "{}: vectors of {} and {} columns.", what, fine.columns(), coarse.columns());
}

/// The weights of the cubic through four neighbouring points, at `t` behind the first of them.
std::array<double, 4> cubic_at(double t) {
  std::array<double, 4> out{};
  for (int i = 0; i < 4; ++i) {
    out[std::size_t(i)] = 1;
    for (int j = 0; j < 4; ++j)
      if (j != i) out[std::size_t(i)] *= (t - j) / double(i - j);
  }
  return out;
}

/// Of the own fine points of an axis; places of coarse points are numbers along it.
struct OneAxis {
  i64 n, m;     ///< fine and coarse points
  bool around;  ///< periodic
  Centring centring;
  std::array<double, 2> ends;
  bool there(i64 c) const { return around || (c >= 0 && c < m); }
  /// Where points are, in fine spacings.
  double place(i64 fine) const { return centring == Centring::nodes ? double(fine) : double(fine) + 0.5; }
  double coarse_place(i64 c) const { return centring != Centring::nodes ? 2 * double(c) + 1 : around ? 2 * double(c) : 2 * double(c) + 1; }
  double border(bool upper) const { return upper ? place(n - 1) + ends[1] : place(0) - ends[0]; }
  /// Behind the last coarse point c: on the line from there to the border.
  Axis::Few outside(i64 i, i64 c) const {
    bool const upper = c > 0 || place(i) > coarse_place(0);
    double const t = std::abs(border(upper) - place(i)), all = std::abs(border(upper) - coarse_place(c));
    return {{c, c}, {ends[upper ? 1 : 0] > 0 ? t / all : 1, 0}};
  }

  Axis::Few linear(i64 i) const {
    if (centring == Centring::blocks) {
      i64 const c = std::min(i >> 1, m - 1);
      return {{c, c}, {1, 0}};
    }
    if (centring == Centring::cells) {
      i64 const c = i >> 1, other = i % 2 == 0 ? c - 1 : c + 1;
      if (!there(c)) return outside(i, m - 1);
      return there(other) ? Axis::Few{{c, other}, {0.75, 0.25}} : outside(i, c);
    }
    i64 const g = around ? i : i - 1, down = g >> 1;  // rounded down, below 0 too
    if (g % 2 == 0) return {{down, down}, {1, 0}};
    return there(down) && there(down + 1) ? Axis::Few{{down, down + 1}, {0.5, 0.5}} : outside(i, there(down) ? down : down + 1);
  }
  /// Of nodes the borders are points too, with zeros, where they are as far as usual; of others the points are inside, for any condition at
  /// the borders. No cubics where an axis is closed by points that are nearer than others.
  bool has_cubics() const { return around ? n % 2 == 0 && m >= 4 : m >= 4 - (border_is_point(0) ? 1 : 0) - (border_is_point(1) ? 1 : 0); }
  bool border_is_point(std::size_t side) const {
    return centring == Centring::nodes && !around && ends[side] == 1 && (side == 0 || n % 2 == 1);
  }
  Axis::Few cubic(i64 i) const {
    bool const nodes = centring == Centring::nodes;
    double const at = nodes ? 0.5 * double(around ? i : i - 1) : 0.5 * double(i) - 0.25;  // in coarse points
    if (nodes && at == std::floor(at)) return {{i64(at), i64(at), i64(at), i64(at)}, {1, 0, 0, 0}};
    i64 first = i64(std::floor(at)) - 1;
    if (!around) first = std::clamp<i64>(first, border_is_point(0) ? -1 : 0, border_is_point(1) ? m - 3 : m - 4);
    auto const w = cubic_at(at - double(first));
    Axis::Few out{};
    for (int e = 0; e < 4; ++e) out.at[e] = first + e, out.weight[e] = there(first + e) ? w[std::size_t(e)] : 0;
    return out;
  }
};

Axis axis_of(BrickDomain const& fine, BrickDomain const& coarse, std::size_t d, Centring centring, std::array<double, 2> const& ends,
             bool cubic) {
  Axis out;
  auto const own = fine.owned();
  OneAxis const one{fine.shape()[d], coarse.shape()[d], fine.periodic()[d], centring, ends};
  bool const missing = d < std::size_t(3 - fine.dimensions());
  out.most = cubic && !missing && one.has_cubics() ? 4 : 2;
  i64 low = 0, high = 0;
  for (i64 i = own.low[d]; i < own.high[d]; ++i) {
    auto p = missing ? Axis::Few{{i, i}, {1, 0}} : out.most == 4 ? one.cubic(i) : one.linear(i);
    i64 valid = p.at[0];
    for (int e = 0; e < out.most; ++e)
      if (p.weight[e] != 0) valid = p.at[e];
    for (int e = 0; e < out.most; ++e) {
      if (!one.there(p.at[e]) && !missing) p.at[e] = valid;  // its weight is zero
      low = out.fine.empty() && e == 0 ? p.at[e] : std::min(low, p.at[e]);
      high = out.fine.empty() && e == 0 ? p.at[e] + 1 : std::max(high, p.at[e] + 1);
    }
    out.fine.push_back(p);
  }
  out.low = low;
  out.coarse.resize(std::size_t(high - low));
  for (std::size_t i = 0; i < out.fine.size(); ++i)
    for (int e = 0; e < out.most; ++e) {
      out.fine[i].at[e] -= low;
      if (out.fine[i].weight[e] == 0 || out.most == 4) continue;
      auto& c = out.coarse[std::size_t(out.fine[i].at[e])];
      c.at[c.count] = i64(i), c.weight[c.count++] = out.fine[i].weight[e];
    }
  out.find_alike();
  return out;
}

}  // namespace

Ends usual_ends(Centring centring) {
  double const end = centring == Centring::nodes ? 1 : 0;
  return {{{end, end}, {end, end}, {end, end}}};
}

std::optional<BrickDomain> BrickTransfer::coarsened(BrickDomain const& fine, Centring centring, Coarsening const& how) {
  auto const& least = how.least;
  i64 points = 1;
  std::vector<i64> shape;
  std::vector<int> brick, boxes;
  std::vector<bool> periodic;
  for (auto d = std::size_t(3 - fine.dimensions()); d < 3; ++d) {
    auto const n = fine.shape()[d];
    auto b = fine.brick()[d];
    bool const around = fine.periodic()[d], halves = centring != Centring::nodes || around;
    i64 const m = around ? (n + 1) / 2 : n / 2;
    while (around && m % b != 0 && (how.any_size || b % 2 == 0)) b = how.any_size ? b - 1 : b / 2;
    bool const wide = least.empty() || b >= least[shape.size()], fits = how.any_size || (halves ? n % 2 == 0 : n % 2 != 0);
    if (n < 2 || !fits || (around && m % b != 0) || !wide) return std::nullopt;
    points *= m;
    shape.push_back(m);
    brick.push_back(int(b));
    periodic.push_back(around);
    boxes.push_back(fine.partition().boxes()[d]);
  }
  auto const& used = fine.partition().used();
  auto const most = how.points_per_rank > 0 ? points / how.points_per_rank : std::numeric_limits<i64>::max();
  return BrickDomain(fine.space().comm(), shape, brick, periodic, boxes, fine.transport(),
                     std::min(most, i64(used[0]) * used[1] * used[2]));
}

Ends BrickTransfer::coarse_ends(BrickDomain const& fine, Centring centring, Ends const& ends) {
  auto out = ends;
  for (std::size_t d = 0; d < 3; ++d) {
    OneAxis const one{fine.shape()[d], fine.shape()[d] / 2, false, centring, ends[d]};
    for (bool const upper : {false, true})
      if (auto& end = out[d][upper ? 1 : 0]; end > 0) end = std::abs(one.border(upper) - one.coarse_place(upper ? one.m - 1 : 0)) / 2;
  }
  return out;
}

BrickTransfer::BrickTransfer(BrickDomain const& fine, BrickDomain const& coarse, Centring centring, Dtype dtype, Ends const& ends,
                             bool cubic)
    : dtype_(dtype), centring_(centring), ends_(ends), cubic_(cubic) {
  auto s = std::make_shared<State>();
  s->fine = fine, s->coarse = coarse;
  auto const own = fine.owned();
  auto const size = own.sizes();
  for (std::size_t d = 0; d < 3; ++d) {
    s->points.axes[d] = axis_of(fine, coarse, d, centring, ends[d], cubic);
    s->points.bricks[d] = (size[d] + fine.brick()[d] - 1) / fine.brick()[d];
    if (d >= std::size_t(3 - fine.dimensions())) s->share /= 2;
  }
  auto const& b = s->points.brick = fine.brick();
  for (i64 i = 0; i < s->points.bricks[0]; ++i)
    for (i64 j = 0; j < s->points.bricks[1]; ++j)
      for (i64 k = 0; k < s->points.bricks[2]; ++k) s->points.places.push_back(fine.place({i * b[0], j * b[1], k * b[2]}));
  s->points.rows = rows_at_once(s->points.bricks[2] * fine.points_of_brick() * i64(size_of(dtype)));
  // the owner of each coarse point around, and its place there
  auto const& p = coarse.partition();
  auto const boxes = p.boxes();
  auto const cut = coarse.cut();
  struct Owner {
    int box = 0;
    i64 brick = 0, within = 0;  // counted from its first brick
  };
  std::array<std::vector<Owner>, 3> owners;
  for (std::size_t d = 0; d < 3; ++d) {
    std::array<int, 3> const stride{boxes[1] * boxes[2], boxes[2], 1};
    for (std::size_t c = 0; c < s->points.axes[d].coarse.size(); ++c) {
      i64 const point = modulo(s->points.axes[d].low + i64(c), coarse.shape()[d]), brick = point / coarse.brick()[d];
      Owner o{0, brick, point % coarse.brick()[d]};
      for (int box = 0; box < boxes[d]; ++box) {
        auto const range = p.owned(box * stride[d]);
        if (brick >= range.low[d] && brick < range.high[d]) o.box = box, o.brick = brick - range.low[d];
      }
      owners[d].push_back(o);
    }
  }
  std::vector<BrickOrder> orders;  // of the owners, by their boxes
  std::vector<int> of_rank(std::size_t(fine.space().comm().size()), -1);
  std::vector<comm::RemoteRoot> roots;
  if (own.points() > 0) roots.reserve(std::size_t(s->points.around()));
  for (auto const& x : owners[0])
    for (auto const& y : owners[1])
      for (auto const& z : owners[2]) {
        if (own.points() == 0) continue;
        int const rank = (x.box * boxes[1] + y.box) * boxes[2] + z.box;
        auto& known = of_rank[std::size_t(rank)];
        if (known < 0) known = int(orders.size()), orders.emplace_back(p.owned(rank).sizes(), cut);
        i64 const brick = orders[std::size_t(known)].number({x.brick, y.brick, z.brick});
        roots.push_back(
            {rank, brick * coarse.points_of_brick() + (x.within * coarse.brick()[1] + y.within) * coarse.brick()[2] + z.within});
      }
  auto const count = i64(roots.size());
  comm::StarForest forest(fine.space().comm(), coarse.space().local_size(), std::nullopt, roots, count, fine.transport());
  forest.set_name("coarse points of a domain of bricks");
  s->forest = comm::QueuedForest(std::move(forest));
  s_ = std::move(s);
}

BrickTransfer::State::Lists const& BrickTransfer::State::on_device() {
  std::call_once(listed, [&] {
    for (std::size_t d = 0; d < 3; ++d) {
      lists.fine[d] = Array::of(std::span<Few const>(points.axes[d].fine));
      lists.coarse[d] = Array::of(std::span<Several const>(points.axes[d].coarse));
    }
    lists.places = Array::of(std::span<i64 const>(points.places));
  });
  return lists;
}

kernel::PointCounts BrickTransfer::State::counts() const {
  kernel::PointCounts n{};
  for (std::size_t d = 0; d < 3; ++d) {
    n.fine[d] = i64(points.axes[d].fine.size()), n.around[d] = i64(points.axes[d].coarse.size()), n.most[d] = points.axes[d].most;
    n.bricks[d] = points.bricks[d], n.brick[d] = points.brick[d];
  }
  return n;
}

void BrickTransfer::interpolate(Vector const& x, Vector& y, bool adds) const {
  static int const event = profile::event("Interpolate");
  double const bytes = double(size_of(dtype_)) * double(x.columns());
  profile::Scope const scope(event, bytes * double(y.local_size() * (adds ? 2 : 1) + x.local_size()), 0);
  comm::collective(range().comm(), "interpolation", [&] {
    check(*this, y, x, "interpolation");
    each_column(x, y, [&](Vector const& from, Vector& to) {
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const& queue = to.queue();
        auto const values = Array::fresh(queue, std::size_t(s_->forest.forest().leaf_space()) * sizeof(T));
        s_->forest.bcast_begin(queue, dtype_, 1, from.data(), values).end();
        if (queue.memory() == device::Memory::gpu) {
          auto const& [fine, coarse, places] = s_->on_device();
          auto const points = [&](auto const& result) {
            device::submit(queue, kernel::interpolate_points<T>, s_->counts(), adds, device::read<Few>(fine[0]), device::read<Few>(fine[1]),
                           device::read<Few>(fine[2]), device::read<i64>(places), device::read<T>(values), result);
          };
          return adds ? points(device::update<T>(to.data())) : points(device::write<T>(to.data()));
        }
        auto const run = [s = s_, adds](device::Executor& e, T const* around, T* fine) {
          kernel::interpolate_bricks(e, s->points, adds, around, fine);
        };
        if (adds) device::submit(queue, run, device::read<T>(values), device::update<T>(to.data()));
        else device::submit(queue, run, device::read<T>(values), device::write<T>(to.data()));
      });
    });
  });
}

void BrickTransfer::restrict_to(Vector const& x, Vector& y, double factor) const {
  static int const event = profile::event("Restrict");
  double const bytes = double(size_of(dtype_)) * double(x.columns());
  profile::Scope const scope(event, bytes * double(y.local_size() + x.local_size()), 0);
  comm::collective(range().comm(), "restriction", [&] {
    check(*this, x, y, "restriction");
    ASTERISM_REQUIRE(!cubic_, unsupported, "{} has no transpose.", describe());
    each_column(x, y, [&](Vector const& from, Vector& to) {
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const& queue = to.queue();
        auto const values = Array::fresh(queue, std::size_t(s_->forest.forest().leaf_space()) * sizeof(T));
        if (queue.memory() == device::Memory::gpu) {
          auto const& [of_fine, coarse, places] = s_->on_device();
          device::submit(queue, kernel::restrict_points<T>, s_->counts(), T(real_t<T>(factor)), device::read<Several>(coarse[0]),
                         device::read<Several>(coarse[1]), device::read<Several>(coarse[2]), device::read<i64>(places),
                         device::read<T>(from.data()), device::write<T>(values));
        } else {
          auto const run = [s = s_, factor](device::Executor& e, T const* fine, T* around) {
            kernel::restrict_bricks(e, s->points, factor, fine, around);
          };
          device::submit(queue, run, device::read<T>(from.data()), device::write<T>(values));
        }
        fill(to, 0.0);
        s_->forest.reduce(queue, dtype_, 1, values, to.data());
      });
    });
  });
}

std::shared_ptr<BrickTransfer const> BrickTransfer::by_cubics() const {
  return std::make_shared<BrickTransfer const>(s_->fine, s_->coarse, centring_, dtype_, ends_, true);
}

void BrickRestriction::apply_transpose(Vector const& x, Vector& y, bool) const {
  of_->apply(x, y);
  scale(of_->share(), y);
}

std::string BrickTransfer::describe() const {
  auto const n = s_->coarse.shape(), m = s_->fine.shape();
  return format("{}interpolation from {} x {} x {} to {} x {} x {} points in bricks", cubic_ ? "cubic " : "", n[0], n[1], n[2], m[0], m[1],
                m[2]);
}

}  // namespace asterism::grid
