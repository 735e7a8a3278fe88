#include "asterism/grid/bricks/brick_domain.hpp"

#include <cstring>
#include <limits>
#include <map>

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/device/host/caches.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using comm::IndexSet;

constexpr i64 most_of_brick = i64(1) << 24;  // points; of those beyond the grid too, which only take memory

/// Numbers of the bricks around a box, one deep, in an array of (n + 2) bricks a direction; -1: not known.
std::size_t around(Triple const& n, Triple const& at) {
  return std::size_t(((at[0] + 1) * (n[1] + 2) + at[1] + 1) * (n[2] + 2) + at[2] + 1);
}

template <class F>
void each_in(Box const& b, F const& f) {
  for (auto i = b.low[0]; i < b.high[0]; ++i)
    for (auto j = b.low[1]; j < b.high[1]; ++j)
      for (auto k = b.low[2]; k < b.high[2]; ++k) f(Triple{i, j, k});
}

std::array<bool, 3> cut_of(Partition const& p) {
  auto const& boxes = p.used();
  return {boxes[0] > 1, boxes[1] > 1, boxes[2] > 1};
}

std::string text(std::vector<i64> const& v) {
  std::string out;
  for (auto const x : v) out += (out.empty() ? "" : " x ") + std::to_string(x);
  return out;
}

/// BrickDomain::visits(); of points with 8 bytes.
std::vector<int> in_rows(BrickOrder const& order, Triple const& n, i64 points) {
  std::array<std::vector<int>, 2> out;  // of the inner bricks, and of the others
  i64 const rows = rows_at_once(n[2] * points * 8);
  for (i64 first = 0; first < n[1]; first += rows)
    for (i64 i = 0; i < n[0]; ++i)
      for (i64 j = first; j < std::min(n[1], first + rows); ++j)
        for (i64 k = 0; k < n[2]; ++k) {
          auto const number = order.number({i, j, k});
          out[number < order.inner() ? 0 : 1].push_back(int(number));
        }
  out[0].insert(out[0].end(), out[1].begin(), out[1].end());
  return std::move(out[0]);
}

}  // namespace

i64 rows_at_once(i64 bytes_of_row) {
  // more rows, by a large share of the third cache, made steps in float32 slower
  i64 const cache = std::min<i64>(device::host::core_cache_bytes(), i64(3) << 19);
  return std::max<i64>(1, cache / 3 / std::max<i64>(1, bytes_of_row));
}

BrickDomain::BrickDomain(comm::Communicator const& comm, std::vector<i64> const& shape, std::vector<i64> const& brick,
                         std::vector<bool> const& periodic, std::vector<i64> const& boxes, comm::TransportChoice transport,
                         i64 most_ranks) {
  auto s = std::make_shared<State>();
  auto const d = shape.size();
  Triple counts{1, 1, 1};
  std::array<bool, 3> around_ends{};
  std::array<int, 3> p{1, 1, 1};
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(d >= 1 && d <= 3, shape, "a domain of bricks has 1, 2 or 3 dimensions, not {}.", d);
    ASTERISM_REQUIRE(brick.size() == d && periodic.size() == d && (boxes.empty() || boxes.size() == d), shape,
                     "a domain of {} dimensions needs as many sizes of a brick and answers to 'periodic', not {} and {}.", d, brick.size(),
                     periodic.size());
    i64 padded = 1, ranks = 1, points = 1;
    for (std::size_t a = 0; a < d; ++a) {
      ASTERISM_REQUIRE(shape[a] >= 1 && shape[a] <= std::numeric_limits<int>::max() / 2, shape,
                       "axis {} has {} points; 1 to {} are possible.", a, shape[a], std::numeric_limits<int>::max() / 2);
      ASTERISM_REQUIRE(brick[a] >= 1, shape, "a brick of {} points along axis {}; at least 1.", brick[a], a);
      points = brick[a] > most_of_brick / points ? most_of_brick + 1 : points * brick[a];
      ASTERISM_REQUIRE(points <= most_of_brick, shape,
                       "a brick of {} points; at most {} in all. Take smaller bricks, such as of 8 along each axis.", text(brick),
                       most_of_brick);
      ASTERISM_REQUIRE(!periodic[a] || shape[a] % brick[a] == 0, shape,
                       "axis {} is periodic with {} points: that is no multiple of the {} points of a brick. Choose another brick=.", a,
                       shape[a], brick[a]);
      padded = checked_product(padded, (shape[a] + brick[a] - 1) / brick[a] * brick[a], "domain of bricks");
      if (boxes.empty()) continue;
      ASTERISM_REQUIRE(boxes[a] >= 1 && boxes[a] <= comm.size(), value, "a direction cannot be cut into {} boxes for {} ranks.", boxes[a],
                       comm.size());
      ranks *= boxes[a];
    }
    ASTERISM_REQUIRE(boxes.empty() || ranks == comm.size(), value, "the domain is cut into {} boxes, but there are {} ranks.", ranks,
                     comm.size());
  });
  std::vector<i64> const flags(periodic.begin(), periodic.end());
  comm::Fact const facts[] = {{"shape", text(shape)}, {"brick", text(brick)}, {"periodic", text(flags)}, {"boxes", text(boxes)}};
  comm::require_same(comm, "domain of bricks", facts);
  s->dimensions = int(d);
  s->shape = s->brick = {1, 1, 1};
  for (std::size_t a = 0; a < d; ++a) {
    auto const b = 3 - d + a;
    s->shape[b] = shape[a], s->brick[b] = brick[a];
    counts[b] = (shape[a] + brick[a] - 1) / brick[a];
    around_ends[b] = periodic[a];
    p[b] = boxes.empty() ? 0 : int(boxes[a]);
    s->extent.push_back(int(shape[a]));
  }
  if (boxes.empty()) p = Partition::choose_boxes(counts, int(d), around_ends, comm.size());
  s->partition = Partition(counts, p, around_ends, 1, Stencil::box).on_fewer(most_ranks);
  s->transport = transport;
  auto const own = s->partition.owned(comm.rank());
  auto const n = own.sizes();
  s->order = BrickOrder(n, cut_of(s->partition));
  i64 const points = s->brick[0] * s->brick[1] * s->brick[2], bricks = s->order.bricks();
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(bricks <= std::numeric_limits<int>::max() / 4, shape, "{} bricks on a rank; at most {}. Take larger ones.", bricks,
                     std::numeric_limits<int>::max() / 4);
  });
  s->space = la::Space(comm::Layout(comm, bricks * points));
  std::vector<int> ids;
  auto edges = find_ghosts(*s, ids);
  if (comm.size() > 1) {
    auto forest = comm::StarForest::from_index_sets(comm, bricks * points, std::move(edges), (s->ghosts + 1) * points, transport);
    forest.set_name("bricks around a rank's box");
    s->space = s->space.with_ghosts(std::move(forest));
  }
  // the lists of kernels
  int const all = d == 3 ? 27 : d == 2 ? 9 : 3;
  auto const is_cut = cut_of(s->partition);
  for (std::size_t a = 0; a < 3; ++a) s->known.low[a] = is_cut[a] ? -1 : 0, s->known.high[a] = n[a] + (is_cut[a] ? 1 : 0);
  if (bricks == 0) s->known = {};
  int const beyond = int(bricks + s->ghosts);  // has a row too: steps to a neighbour's neighbour may lead there
  std::vector<int> neighbours((std::size_t(beyond) + 1) * std::size_t(all), beyond), origins(std::size_t(beyond) * d);
  s->numbers.resize(std::size_t(s->known.points()));
  std::size_t next = 0;
  each_in(s->known, [&](Triple const& at) {
    auto const found = ids[around(n, at)];
    s->numbers[next++] = found == beyond ? -1 : found;
    if (found == beyond) return;
    auto const id = std::size_t(found);
    for (auto a = 3 - d; a < 3; ++a) origins[id * d + a + d - 3] = int((own.low[a] + at[a] + counts[a]) % counts[a] * s->brick[a]);
    std::size_t step = 0;
    i64 const reach[3] = {d == 3, d >= 2, 1};
    for (i64 i = -reach[0]; i <= reach[0]; ++i)
      for (i64 j = -reach[1]; j <= reach[1]; ++j)
        for (i64 k = -1; k <= 1; ++k) {
          Triple const there{at[0] + i, at[1] + j, at[2] + k};
          bool within = true;
          for (std::size_t a = 0; a < 3; ++a) within = within && there[a] >= -1 && there[a] <= n[a];
          neighbours[id * std::size_t(all) + step++] = within ? ids[around(n, there)] : beyond;
        }
  });
  s->neighbours = device::Array::of<int const>(neighbours), s->origins = device::Array::of<int const>(origins);
  s->visits = device::Array::of<int const>(in_rows(s->order, n, points));
  auto const& space = s->space;
  s_ = s;
  std::vector<std::pair<i64, i64>> padding;
  each_row(0, lines(), [&](Triple const&, i64 place, i64 count) {
    if (count < s->brick[2]) padding.emplace_back(place + count, s->brick[2] - count);
  });
  std::sort(padding.begin(), padding.end());
  if (!padding.empty()) s->space = space.with_padding(std::move(padding));
  s->space = space.with_names([d, brick = s->brick, points, firsts = s->origins](i64 entry) {
    i64 const in = entry % points, at[3] = {in / (brick[1] * brick[2]), in / brick[2] % brick[1], in % brick[2]};
    std::string text;
    for (auto a = 3 - d; a < 3; ++a)
      text += (text.empty() ? "" : ", ") + std::to_string(firsts.as<int>()[entry / points * i64(d) + i64(a + d - 3)] + at[a]);
    return "point (" + text + ")";
  });
}

/// Sets the number of ghosts; ids: of all bricks around the box. The copies on one side of it stand together, in the order that their owner
/// has them in.
std::vector<comm::StarForest::EdgeSets> BrickDomain::find_ghosts(State& s, std::vector<int>& ids) const {
  int const me = s.space.comm().rank();
  auto const& p = s.partition;
  auto const n = p.owned(me).sizes();
  i64 const points = s.brick[0] * s.brick[1] * s.brick[2];
  auto const is_cut = cut_of(p);
  ids.assign(s.order.bricks() == 0 ? 0 : std::size_t((n[0] + 2) * (n[1] + 2) * (n[2] + 2)), -1);
  if (ids.empty()) return {};
  i64 next = s.order.bricks();
  std::map<int, std::pair<std::vector<IndexSet>, std::vector<IndexSet>>> pieces;
  p.each_part(me, Stencil::box, [&](std::array<Partition::Run, 3> const& part, int owner, bool) {
    bool copied = false;
    Box theirs;
    Triple here{};
    for (std::size_t d = 0; d < 3; ++d) {
      if (part[d].side != 0 && !is_cut[d]) return;  // around the end to own bricks
      copied = copied || part[d].side != 0;
      theirs.low[d] = part[d].theirs, theirs.high[d] = part[d].theirs + part[d].length;
      here[d] = part[d].in_side + (part[d].side < 0 ? -1 : part[d].side > 0 ? n[d] : 0) - part[d].theirs;
    }
    if (!copied) return;
    BrickOrder const order(p.owned(owner).sizes(), is_cut);
    auto const runs = order.runs(theirs);
    auto& [leaves, roots] = pieces[owner];
    std::map<i64, i64> first;  // of each run: the number of its first copy
    for (auto const& [begin, count] : runs) {
      first[begin] = next;
      leaves.push_back(IndexSet::range((next - s.order.bricks()) * points, count * points));
      roots.push_back(IndexSet::range(begin * points, count * points));
      next += count;
    }
    each_in(theirs, [&](Triple const& at) {
      i64 const number = order.number(at);
      auto const run = std::prev(first.upper_bound(number));
      ids[around(n, {at[0] + here[0], at[1] + here[1], at[2] + here[2]})] = int(run->second + number - run->first);
    });
  });
  s.ghosts = next - s.order.bricks();
  each_in({{-1, -1, -1}, {n[0] + 1, n[1] + 1, n[2] + 1}}, [&](Triple const& at) {
    auto inside = at;
    bool beyond = false, other = false;
    for (std::size_t d = 0; d < 3; ++d) {
      bool const out = at[d] < 0 || at[d] >= n[d];
      if (out && !is_cut[d]) inside[d] = (at[d] + n[d]) % n[d], beyond = beyond || !p.periodic()[d];
      else other = other || out;
    }
    auto& id = ids[around(n, at)];
    if (id >= 0) return;
    // of those that are copies the one within the box along uncut directions was found above
    if (beyond) id = int(next);
    else if (!other) id = int(s.order.number(inside));
    else if (auto const copy = ids[around(n, inside)]; copy >= 0) id = copy;
    else id = int(next);
  });
  std::vector<comm::StarForest::EdgeSets> edges;
  for (auto const& [rank, sets] : pieces) edges.push_back({rank, IndexSet::joined(sets.first), IndexSet::joined(sets.second)});
  return edges;
}

Box BrickDomain::owned(int rank) const {
  auto box = s_->partition.owned(rank);
  for (std::size_t d = 0; d < 3; ++d) {
    box.low[d] = std::min(box.low[d] * s_->brick[d], s_->shape[d]);
    box.high[d] = std::min(box.high[d] * s_->brick[d], s_->shape[d]);
  }
  return box;
}

int BrickDomain::number(Triple const& at) const {
  auto const& k = s_->known;
  auto const size = k.sizes();
  return s_->numbers[std::size_t(((at[0] - k.low[0]) * size[1] + at[1] - k.low[1]) * size[2] + at[2] - k.low[2])];
}

i64 BrickDomain::place(Triple const& point) const {
  auto const& b = s_->brick;
  i64 const in = (point[0] % b[0] * b[1] + point[1] % b[1]) * b[2] + point[2] % b[2];
  return s_->order.number({point[0] / b[0], point[1] / b[1], point[2] / b[2]}) * points_of_brick() + in;
}

i64 BrickDomain::lines() const {
  auto const size = owned().sizes();
  auto const& b = s_->brick;
  return size[2] == 0 ? 0 : (size[0] + b[0] - 1) / b[0] * ((size[1] + b[1] - 1) / b[1]);
}

i64 BrickDomain::serial_lines() const {
  auto const& b = s_->brick;
  i64 const columns = (owned().sizes()[2] + b[2] - 1) / b[2];
  return std::max<i64>(1, 4096 / (points_of_brick() * std::max<i64>(columns, 1)));
}

void BrickDomain::to_bricks(void const* points, void* bricks, std::size_t bytes) const {
  auto const* const from = static_cast<std::byte const*>(points);
  auto* const to = static_cast<std::byte*>(bricks);
  auto const row = std::size_t(s_->brick[2]);
  each_row([=, size = owned().sizes()](Triple const& point, i64 place, i64 count) {
    auto const n = std::size_t(count);
    auto const at = std::size_t((point[0] * size[1] + point[1]) * size[2] + point[2]);
    if (n > 0) std::memcpy(to + std::size_t(place) * bytes, from + at * bytes, n * bytes);
    std::memset(to + (std::size_t(place) + n) * bytes, 0, (row - n) * bytes);
  });
}

void BrickDomain::from_bricks(void const* bricks, void* points, std::size_t bytes) const {
  auto const* const from = static_cast<std::byte const*>(bricks);
  auto* const to = static_cast<std::byte*>(points);
  each_row([=, size = owned().sizes()](Triple const& point, i64 place, i64 count) {
    auto const at = std::size_t((point[0] * size[1] + point[1]) * size[2] + point[2]);
    if (count > 0) std::memcpy(to + at * bytes, from + std::size_t(place) * bytes, std::size_t(count) * bytes);
  });
}

void BrickDomain::spread(void const* items, Triple const& sizes, std::array<std::vector<i64>, 3> const& places, void* bricks,
                         std::size_t bytes) const {
  auto const box = owned().sizes();
  for (std::size_t a = 0; a < 3; ++a)
    ASTERISM_REQUIRE(std::ssize(places[a]) == box[a] &&
                         std::all_of(places[a].begin(), places[a].end(), [&](i64 at) { return at >= 0 && at < sizes[a]; }),
                     internal, "places along axis {} do not fit {} points of a box and {} items", a, box[a], sizes[a]);
  auto const* const from = static_cast<std::byte const*>(items);
  auto* const to = static_cast<std::byte*>(bricks);
  i64 const row = s_->brick[2];
  each_row([=, &places](Triple const& point, i64 place, i64 count) {
    if (count > 0) {
      i64 const first = (places[0][std::size_t(point[0])] * sizes[1] + places[1][std::size_t(point[1])]) * sizes[2];
      for (i64 k = 0; k < count; ++k)
        std::memcpy(to + std::size_t(place + k) * bytes, from + std::size_t(first + places[2][std::size_t(point[2] + k)]) * bytes, bytes);
    }
    std::memset(to + std::size_t(place + count) * bytes, 0, std::size_t(row - count) * bytes);
  });
}

}  // namespace asterism::grid
