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
using kernel::Held;
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
  /// One point stays one.
  bool kept() const { return n == 1; }
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

  /// Of any point, around the end of a periodic axis too; `cubic` if there are.
  Axis::Few any(i64 i, bool cubics) const {
    i64 const in = around ? modulo(i, n) : i, turns = (i - in) / n;
    auto out = cubics ? cubic(in) : linear(in);
    for (auto& at : out.at) at += turns * m;
    return out;
  }
  /// Where a coarse point lies among the fine ones: at a point, or behind it.
  i64 anchor(i64 c) const { return kept() ? c : centring == Centring::nodes && !around ? 2 * c + 1 : 2 * c; }

  Axis::Few linear(i64 i) const {
    if (kept()) return {{i, i}, {1, 0}};
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

OneAxis one_axis(BrickDomain const& fine, BrickDomain const& coarse, std::size_t d, Centring centring, Ends const& ends) {
  return {fine.shape()[d], coarse.shape()[d], fine.periodic()[d], centring, ends[d]};
}

bool is_missing(BrickDomain const& fine, std::size_t d) { return d < std::size_t(3 - fine.dimensions()); }

/// Of the points [begin, end) of an axis; those beyond its ends are made of nothing.
void fill_axis(Axis& out, OneAxis const& one, bool missing, bool cubic, i64 begin, i64 end) {
  out.most = cubic && !missing && one.has_cubics() ? 4 : 2;
  i64 low = std::numeric_limits<i64>::max(), high = std::numeric_limits<i64>::min();
  std::vector<bool> there;
  for (i64 i = begin; i < end; ++i) {
    there.push_back(missing || one.around || (i >= 0 && i < one.n));
    auto p = missing || !there.back() ? Few{{i, i, i, i}, {missing ? 1.0 : 0.0}} : one.any(i, out.most == 4);
    out.fine.push_back(p);
    if (!there.back()) continue;
    auto& q = out.fine.back();
    i64 valid = q.at[0];
    for (int e = 0; e < out.most; ++e)
      if (q.weight[e] != 0) valid = q.at[e];
    for (int e = 0; e < out.most; ++e) {
      if (!missing && !one.there(q.at[e])) q.at[e] = valid;  // its weight is zero
      low = std::min(low, q.at[e]), high = std::max(high, q.at[e] + 1);
    }
  }
  if (low > high) low = high = 0;
  out.low = low, out.around = high - low;
  for (std::size_t i = 0; i < out.fine.size(); ++i)
    for (auto& at : out.fine[i].at) at = there[i] ? at - low : 0;
}

/// What own points are made of, and the other way round.
Axis axis_of(OneAxis const& one, bool missing, bool cubic, i64 begin, i64 end) {
  Axis out;
  fill_axis(out, one, missing, cubic, begin, end);
  out.coarse.resize(std::size_t(out.around));
  for (std::size_t i = 0; i < out.fine.size() && out.most != 4; ++i)
    for (int e = 0; e < out.most; ++e) {
      if (out.fine[i].weight[e] == 0) continue;
      auto& c = out.coarse[std::size_t(out.fine[i].at[e])];
      c.at[c.count] = i64(i), c.weight[c.count++] = out.fine[i].weight[e];
    }
  return out;
}

/// The coarse points at the own fine ones [begin, end), and what they are made of.
Held held_of(OneAxis const& one, bool missing, i64 begin, i64 end, i64 brick, i64 coarse_brick) {
  Held out;
  for (i64 c = 0; c < (missing ? 1 : one.m); ++c) {
    i64 const at = missing ? 0 : one.anchor(c);
    if (at < begin || at >= end) continue;
    if (out.of.empty()) out.first = c;
    while (i64(out.from.size()) <= at - begin) out.from.push_back(i64(out.of.size()));
    Several sums;
    for (i64 i = at - 3; i <= at + 3; ++i) {
      if (missing ? i != 0 : !one.around && (i < 0 || i >= one.n)) continue;
      double weight = missing ? 1 : 0;
      if (!missing) {
        auto const p = one.any(i, false);
        for (int e = 0; e < 2; ++e)
          if (p.at[e] == c) weight += p.weight[e];
      }
      if (weight != 0) sums.at[sums.count] = i - begin, sums.weight[sums.count++] = weight;
    }
    if (out.segments.empty() || c % coarse_brick == 0) out.segments.push_back({i64(out.of.size()), 0});
    out.segment.push_back(i64(out.segments.size()) - 1);
    out.of.push_back(sums);
    out.segments.back().end = i64(out.of.size());
  }
  while (i64(out.from.size()) <= end - begin) out.from.push_back(i64(out.of.size()));
  out.find_alike(), out.find_kinds(brick), out.find_folds(brick);
  return out;
}

/// Who owns coarse points, and where there.
class Owners {
 public:
  /// size points from `first` on along each axis, around the ends of periodic ones.
  Owners(BrickDomain const& coarse, Triple const& first, Triple const& size) : coarse_(coarse) {
    auto const& p = coarse.partition();
    auto const boxes = p.boxes();
    for (std::size_t d = 0; d < 3; ++d) {
      std::array<int, 3> const stride{boxes[1] * boxes[2], boxes[2], 1};
      for (i64 c = 0; c < size[d]; ++c) {
        i64 const point = modulo(first[d] + c, coarse.shape()[d]), brick = point / coarse.brick()[d];
        Owner o{0, brick, point % coarse.brick()[d]};
        for (int box = 0; box < boxes[d]; ++box) {
          auto const range = p.owned(box * stride[d]);
          if (brick >= range.low[d] && brick < range.high[d]) o.box = box, o.brick = brick - range.low[d];
        }
        owners_[d].push_back(o);
      }
    }
    of_rank_.assign(std::size_t(coarse.space().comm().size()), -1);
  }
  comm::RemoteRoot operator()(i64 i, i64 j, i64 k) {
    auto const& b = coarse_.brick();
    auto const boxes = coarse_.partition().boxes();
    auto const &x = owners_[0][std::size_t(i)], &y = owners_[1][std::size_t(j)], &z = owners_[2][std::size_t(k)];
    int const rank = (x.box * boxes[1] + y.box) * boxes[2] + z.box;
    auto& known = of_rank_[std::size_t(rank)];
    if (known < 0) known = int(orders_.size()), orders_.emplace_back(coarse_.partition().owned(rank).sizes(), coarse_.cut());
    i64 const brick = orders_[std::size_t(known)].number({x.brick, y.brick, z.brick});
    return {rank, brick * coarse_.points_of_brick() + (x.within * b[1] + y.within) * b[2] + z.within};
  }

 private:
  struct Owner {
    int box = 0;
    i64 brick = 0, within = 0;  // counted from its first brick
  };
  BrickDomain const& coarse_;
  std::array<std::vector<Owner>, 3> owners_;
  std::vector<BrickOrder> orders_;  // of the owners, by their boxes
  std::vector<int> of_rank_;
};

/// f(bricks) for the shares of threads.
template <class F>
void in_shares(device::Executor& executor, BrickDomain const& domain, F const& f) {
  auto const share = [&](i64 begin, i64 end) { f(std::span<int const>(domain.visits().as<int>() + begin, std::size_t(end - begin))); };
  device::parallel_ranges(executor, domain.bricks(), share, std::max<i64>(1, serial_points / domain.points_of_brick()));
}

/// Of a vector of the domain.
template <class T>
kernel::BrickPlaces<T> places_of(BrickDomain const& domain, T* own, T* ghosts = nullptr, T* zeros = nullptr) {
  return {own, ghosts, zeros, domain.bricks(), domain.ghost_bricks(), domain.points_of_brick(), domain.neighbours().template as<int>()};
}

/// From coarse vectors to so many points. Collective.
comm::QueuedForest forest_of(BrickDomain const& fine, BrickDomain const& coarse, std::vector<comm::RemoteRoot> const& roots,
                             char const* name) {
  comm::StarForest forest(fine.space().comm(), coarse.space().local_size(), std::nullopt, roots, i64(roots.size()), fine.transport());
  forest.set_name(name);
  return comm::QueuedForest(std::move(forest));
}

/// To the points around, in lexicographic order. Collective.
template <class Axes>
comm::QueuedForest forest_around(BrickDomain const& fine, BrickDomain const& coarse, Axes const& axes) {
  Owners owners(coarse, {axes[0].low, axes[1].low, axes[2].low}, {axes[0].around, axes[1].around, axes[2].around});
  std::vector<comm::RemoteRoot> roots;
  roots.reserve(std::size_t(axes[0].around * axes[1].around * axes[2].around));
  for (i64 i = 0; i < axes[0].around; ++i)
    for (i64 j = 0; j < axes[1].around; ++j)
      for (i64 k = 0; k < axes[2].around; ++k) roots.push_back(owners(i, j, k));
  return forest_of(fine, coarse, roots, "coarse points of a domain of bricks");
}

}  // namespace

Ends usual_ends(Centring centring) {
  double const end = centring == Centring::nodes ? 1 : 0;
  return {{{end, end}, {end, end}, {end, end}}};
}

Ends BrickTransfer::coarse_ends(BrickDomain const& fine, Centring centring, Ends const& ends) {
  auto out = ends;
  for (std::size_t d = 0; d < 3; ++d) {
    OneAxis const one{fine.shape()[d], fine.shape()[d] / 2, false, centring, ends[d]};
    if (one.kept()) continue;
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
  auto const& b = fine.brick();
  bool const empty = own.points() == 0;
  Triple const bricks = empty ? Triple{} : fine.partition().owned(fine.space().comm().rank()).sizes();
  auto& host = s->host;
  host.dimensions = fine.dimensions();
  host.brick = b;
  auto const& known = fine.known();
  auto const cut = fine.cut();
  s->gathers = !cubic;
  for (std::size_t d = 0; d < 3; ++d) {
    auto const one = one_axis(fine, coarse, d, centring, ends);
    bool const missing = is_missing(fine, d);
    s->axes[d] = axis_of(one, missing, cubic, own.low[d], empty ? own.low[d] : own.high[d]);
    s->bricks[d] = (size[d] + b[d] - 1) / b[d];
    if (!missing && !one.kept()) s->share /= 2;
    auto& axis = host.axes[d];
    i64 const begin = own.low[d] + known.low[d] * b[d], end = empty ? begin : own.low[d] + known.high[d] * b[d];
    fill_axis(axis, one, missing, cubic, begin, end);
    axis.end = one.around || missing ? end - begin : std::min(end, one.n) - begin;
    axis.find_alike(), axis.find_pairs(begin, b[d]);
    for (i64 first = 0; first < end - begin; first += b[d]) {
      Axis::Range range{axis.around, 0};
      for (i64 k = first; k < std::min(first + b[d], axis.end); ++k)
        for (int e = 0; e < axis.most; ++e) {
          auto const at = axis.fine[std::size_t(k)].at[e];
          range = {std::min(range.first, at), std::max(range.last, at + 1)};
        }
      axis.of_brick.push_back({std::min(range.first, range.last), range.last});
    }
    host.before[d] = -known.low[d] * b[d];
    if (cubic) continue;
    auto& held = host.held[d] = held_of(one, missing, own.low[d], own.low[d] + bricks[d] * b[d], b[d], coarse.brick()[d]);
    for (i64 i = 0; i + 1 < i64(held.from.size()); ++i)
      for (i64 c = held.from[std::size_t(i)]; c < held.from[std::size_t(i + 1)]; ++c) {
        auto const& p = held.of[std::size_t(c)];
        i64 const low = i / b[d] * b[d] - b[d];
        s->gathers = s->gathers && p.at[0] >= low && p.at[p.count - 1] < low + 3 * b[d];
      }
  }
  for (i64 i = 0; i < s->bricks[0]; ++i)
    for (i64 j = 0; j < s->bricks[1]; ++j)
      for (i64 k = 0; k < s->bricks[2]; ++k) s->places.push_back(fine.place({i * b[0], j * b[1], k * b[2]}));
  host.at.resize(std::size_t(fine.bricks() + fine.ghost_bricks()));
  for (i64 i = known.low[0]; i < known.high[0]; ++i)
    for (i64 j = known.low[1]; j < known.high[1]; ++j)
      for (i64 k = known.low[2]; k < known.high[2]; ++k)
        if (int const number = fine.number({i, j, k}); number >= 0)
          host.at[std::size_t(number)] = {int(i - known.low[0]), int(j - known.low[1]), int(k - known.low[2])};
  s->forest = forest_around(fine, coarse, s->axes);
  s->around = cut[0] || cut[1] || cut[2] ? forest_around(fine, coarse, host.axes) : s->forest;
  auto const& comm = fine.space().comm();
  s->gathers = comm.min(i64(s->gathers)) == 1;
  if (s->gathers) {
    auto const& [x, y, z] = host.held;
    Owners owners(coarse, {x.first, y.first, z.first}, {i64(x.of.size()), i64(y.of.size()), i64(z.of.size())});
    std::vector<comm::RemoteRoot> others;
    for (i64 i = 0; i < i64(x.of.size()); ++i)
      for (i64 j = 0; j < i64(y.of.size()); ++j)
        for (auto const& segment : z.segments) {
          auto const first = owners(i, j, segment.begin);
          bool const mine = first.rank == comm.rank();
          host.targets.push_back(mine ? first.offset : -1 - i64(others.size()));
          for (i64 k = segment.begin; k < segment.end && !mine; ++k) others.push_back(owners(i, j, k));
        }
    s->has_others = comm.max(i64(others.size())) > 0;
    if (s->has_others) s->others = forest_of(fine, coarse, others, "coarse points at fine ones of other ranks");
  }
  s_ = std::move(s);
}

BrickTransfer::State::Lists const& BrickTransfer::State::on_device() {
  std::call_once(listed, [&] {
    for (std::size_t d = 0; d < 3; ++d) {
      lists.fine[d] = Array::of(std::span<Few const>(axes[d].fine));
      lists.coarse[d] = Array::of(std::span<Several const>(axes[d].coarse));
    }
    lists.places = Array::of(std::span<i64 const>(places));
  });
  return lists;
}

kernel::PointCounts BrickTransfer::State::counts() const {
  kernel::PointCounts n{};
  for (std::size_t d = 0; d < 3; ++d) {
    n.fine[d] = i64(axes[d].fine.size()), n.around[d] = axes[d].around, n.most[d] = axes[d].most;
    n.bricks[d] = bricks[d], n.brick[d] = fine.brick()[d];
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
        bool const on_gpu = queue.memory() == device::Memory::gpu;
        auto const& forest = on_gpu ? s_->forest : s_->around;
        auto values = Array::fresh(queue, std::size_t(forest.forest().leaf_space()) * sizeof(T));
        forest.bcast_begin(queue, dtype_, 1, from.data(), values).end();
        if (on_gpu) {
          auto const& [fine, coarse, places] = s_->on_device();
          auto const points = [&](auto const& result) {
            device::submit(queue, kernel::interpolate_points<T>, s_->counts(), adds, device::read<Few>(fine[0]), device::read<Few>(fine[1]),
                           device::read<Few>(fine[2]), device::read<i64>(places), device::read<T>(values), result);
          };
          return adds ? points(device::update<T>(to.data())) : points(device::write<T>(to.data()));
        }
        auto const run = [s = s_, adds](device::Executor& e, T const* around, T* fine) {
          auto const& domain = s->fine;
          auto const places = places_of(domain, fine);
          in_shares(e, domain, [&](std::span<int const> bricks) { kernel::interpolate_bricks(s->host, bricks, adds, around, places); });
        };
        if (adds) device::submit(queue, run, device::read<T>(values), device::update<T>(to.data()));
        else device::submit(queue, run, device::read<T>(values), device::write<T>(to.data()));
      });
    });
  });
}

/// From the copies of other ranks' bricks too, which are brought: each coarse point is one sum, on any number of ranks.
template <class T>
void BrickTransfer::gather(Vector const& x, Vector& y, double factor) const {
  auto const& queue = y.queue();
  auto const& space = s_->fine.space();
  Array ghosts;
  if (space.has_local_form()) {
    ghosts = la::room_for_ghosts(x, space, queue);
    space.ghost_forest().bcast_begin(queue, dtype_, 1, x.data(), ghosts).end();
  }
  Array others;  // sums at coarse points of other ranks
  if (s_->has_others) others = Array::fresh(queue, std::size_t(s_->others.forest().leaf_space()) * sizeof(T));
  auto const run = [s = s_, factor](device::Executor& e, T const* fine, T const* copies, T* coarse, T* apart) {
    auto const& domain = s->fine;
    std::vector<T> zeros(std::size_t(domain.points_of_brick()));
    auto const places = places_of(domain, const_cast<T*>(fine), const_cast<T*>(copies), zeros.data());
    in_shares(e, domain, [&](std::span<int const> bricks) { kernel::restrict_bricks(s->host, bricks, factor, places, coarse, apart); });
  };
  device::submit(queue, run, device::read<T>(x.data()), device::read<T>(ghosts), device::write<T>(y.data()), device::write<T>(others));
  clear_padding(y);
  if (s_->has_others) s_->others.reduce(queue, dtype_, 1, others, y.data(), comm::ReduceOp::replace);
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
        if (s_->gathers && queue.memory() != device::Memory::gpu) return gather<T>(from, to, factor);
        auto const values = Array::fresh(queue, std::size_t(s_->forest.forest().leaf_space()) * sizeof(T));
        auto const& [of_fine, coarse, places] = s_->on_device();
        device::submit(queue, kernel::restrict_points<T>, s_->counts(), T(real_t<T>(factor)), device::read<Several>(coarse[0]),
                       device::read<Several>(coarse[1]), device::read<Several>(coarse[2]), device::read<i64>(places),
                       device::read<T>(from.data()), device::write<T>(values));
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
