#include "asterism/grid/bricks/brick_schedule.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/device/host/caches.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using Rows = std::vector<i64>;

/// Planes of points that a stage does at a time: at least so many, of which a brick has a multiple, and so much of each vector that a call
/// is worth it.
i64 planes_at_once(i64 brick, i64 least, i64 bytes_of_plane) {
  constexpr i64 least_bytes = 2048;
  i64 p = std::max<i64>(1, least);
  while (p < brick && (brick % p != 0 || bytes_of_plane * p < least_bytes)) ++p;
  return std::min(p, brick);
}

/// Of one direction: places of the bricks that are there, and whether they go on around its end.
struct Direction {
  i64 low = 0, high = 0, own_low = 0, own_high = 0;
  bool around = false;
  i64 size() const { return high - low; }
};

/// The rows of each tile in each stage. Tiles lean to lower rows; around an end the first one stands upright, and the last one takes what
/// is left on both sides.
std::vector<std::vector<Rows>> leaning(Direction const& d, i64 width, int stages) {
  i64 const n = d.size(), last = (n + width - 1) / width - 1;
  std::vector<std::vector<Rows>> tiles(std::size_t(last + 1), std::vector<Rows>(std::size_t(stages)));
  for (i64 s = 0; s < stages; ++s) {
    auto const put = [&](i64 r) {
      i64 const tile = d.around && r < s ? last : std::min(last, (r + s) / width);
      tiles[std::size_t(tile)][std::size_t(s)].push_back(d.low + r);
    };
    for (i64 r = d.around ? s : 0; r < n; ++r) put(r);
    for (i64 r = 0; d.around && r < std::min(s, n); ++r) put(r);  // after the end, which they go on from
  }
  return tiles;
}

/// The columns of bricks of so many stages: bricks across, and slices of a brick that stages follow each other by.
struct Column {
  i64 slices = 1, height = 1, width = 1;
};

/// rows, columns: of bricks, in the directions that a column does not go along. held: stages that leave bricks in slots.
Column column_of(BrickDomain const& domain, bool along_planes, i64 rows, i64 columns, int stages, i64 bytes_of_vector, int vectors,
                 i64 least_planes, int held) {
  Column c;
  i64 const planes = domain.brick()[0], room = device::host::core_cache_bytes() / 7 * 4;
  if (along_planes) c.slices = planes / planes_at_once(planes, least_planes, bytes_of_vector / planes);
  // of bricks of 4 KB, slices alone share few of the sets of a cache: whole bricks where it holds enough of them
  if (room / (bytes_of_vector * (vectors * (stages + 2) + held * 3)) >= 40) c.slices = 1;
  // so many bricks of a plane that those of the planes under way fit into about half of the cache: the rest goes to what surrounds them
  i64 const bytes_of_column = bytes_of_vector / c.slices * (vectors * (stages + 2) + held * (2 * c.slices + 1));
  i64 const across = std::max<i64>(4, room / bytes_of_column);
  // of whole rows where it holds three of them: they have no ends along which whole bricks are read again
  i64 const height = columns > 0 && across >= 3 * columns ? across / columns : i64(std::sqrt(double(across)));
  c.height = std::clamp<i64>(height, 1, std::max<i64>(rows, 1));
  c.width = std::clamp<i64>(across / c.height, 1, std::max<i64>(columns, 1));
  return c;
}

/// Along the first direction that there is.
std::size_t first_of(std::array<Direction, 3> const& d) { return d[0].size() > 1 ? 0 : d[1].size() > 1 ? 1 : 2; }

std::array<Direction, 3> directions_of(BrickDomain const& domain) {
  auto const& known = domain.known();
  auto const is_cut = domain.cut();
  std::array<Direction, 3> d;
  for (std::size_t a = 0; a < 3; ++a) {
    bool const cut = is_cut[a];
    d[a] = {known.low[a], known.high[a], known.low[a] + (cut ? 1 : 0), known.high[a] - (cut ? 1 : 0), domain.periodic()[a] && !cut};
  }
  return d;
}

/// All in caches, as far as one may count on it: others use the third cache too.
bool fits_caches(i64 bytes) { return bytes <= 2 * std::min<i64>(device::host::core_cache_bytes(), i64(6) << 20); }

}  // namespace

i64 BrickSchedule::stages_at_once(BrickDomain const& domain, i64 most, i64 bytes_of_vector, int vectors, i64 least_planes) {
  auto const d = directions_of(domain);
  auto const along = first_of(d);
  i64 const rows = d[along == 0 ? 1 : 0].size(), columns = d[along == 2 ? 1 : 2].size();
  if (fits_caches(d[along].size() * rows * columns * bytes_of_vector * vectors)) return most;
  auto const column = [&](i64 stages) {
    return column_of(domain, along == 0, rows, columns, int(stages), bytes_of_vector, vectors, least_planes, int(stages) - 1);
  };
  // columns of whole rows stay such; more than three stages were slower than three and then the others
  if (column(2).width == columns)
    for (most = std::min<i64>(most, 3); most > 2 && column(most).width < columns;) --most;
  // vectors that go through memory: those of one stage, and for each later one five more at the edges of columns
  auto const cost = [&](i64 stages) {
    auto const c = column(stages);
    double const edges = (c.height < rows ? 1 / double(c.height) : 0) + (c.width < columns ? 1 / double(c.width) : 0);
    return (vectors + 1 + double(stages - 1) * 5 * edges) / double(stages);
  };
  i64 best = 1;
  for (i64 s = 2; s <= most; ++s)
    if (cost(s) < cost(best)) best = s;
  i64 deepest = best;  // for hardly more: fewer exchanges
  for (i64 s = best + 1; s <= most; ++s)
    if (cost(s) <= 1.05 * cost(best)) deepest = s;
  return deepest;
}

BrickSchedule::BrickSchedule(BrickDomain const& domain, int stages, int threads, i64 bytes_of_vector, int vectors, i64 least_planes,
                             int held) {
  i64 const bytes_of_brick = bytes_of_vector * vectors;
  auto const d = directions_of(domain);
  std::size_t const along = first_of(d), other[2] = {along == 0 ? 1u : 0u, along == 2 ? 1u : 2u};
  std::vector<std::vector<Batch>>* parts = nullptr;
  i64 const all_planes = domain.brick()[0], rows = d[other[0]].size(), columns = d[other[1]].size();
  auto [slices, height, width] = column_of(domain, along == 0, rows, columns, stages, bytes_of_vector, vectors, least_planes, held);
  auto const batch = [&](int stage, i64 slice, Rows const& rows, Rows const& columns) {
    i64 const begin = i64(numbers_.size()), i = slice >= 0 ? slice / slices : -((slices - 1 - slice) / slices);
    int const planes = int(all_planes / slices), first = int(slice - i * slices) * planes;
    bool const own = stage == stages - 1;
    auto const left_out = [&](std::size_t a, i64 r) { return own && (r < d[a].own_low || r >= d[a].own_high); };
    Triple at;
    at[along] = i;
    if (left_out(along, i)) return;
    for (auto const r : rows)
      for (auto const c : columns) {
        if (left_out(other[0], r) || left_out(other[1], c)) continue;
        at[other[0]] = r, at[other[1]] = c;
        if (int const number = domain.number(at); number >= 0) numbers_.push_back(number);
      }
    if (i64 const count = i64(numbers_.size()) - begin; count > 0) parts->back().push_back({stage, begin, count, first, first + planes});
  };
  auto const begin_phase = [&] { parts = &phases_.emplace_back(); };

  i64 const least = std::max(1, 2 * (stages - 1));
  i64 const n = d[along].size() * slices, bytes = d[along].size() * rows * columns * bytes_of_brick;
  i64 const shares = std::min<i64>(threads, n / least);
  interleaved_ = stages > 1 && shares >= threads && !fits_caches(bytes);
  if (!interleaved_) {
    slices = 1;
    // some rows at a time, plane by plane, in equal pieces
    auto const all = leaning(d[other[0]], std::clamp<i64>(rows_at_once(bytes_of_vector * columns), 1, std::max<i64>(rows, 1)), 1),
               across = leaning(d[other[1]], std::max<i64>(columns, 1), 1);
    for (int s = 0; s < stages && bytes > 0; ++s) {
      begin_phase();
      parts->emplace_back();
      for (auto const& tile : all)
        for (i64 i = d[along].low; i < d[along].high; ++i) batch(s, i, tile[0], across[0][0]);
      std::vector<std::vector<Batch>> pieces;
      i64 first = parts->front().empty() ? 0 : parts->front().front().begin, end = i64(numbers_.size());
      for (int t = 0; t < threads; ++t) {
        i64 const b = first + (end - first) * t / threads, e = first + (end - first) * (t + 1) / threads;
        if (e > b) pieces.push_back({{s, b, e - b, 0, int(all_planes)}});
      }
      *parts = std::move(pieces);
    }
    return;
  }
  auto const tiles = leaning(d[other[0]], height, stages), strips = leaning(d[other[1]], width, stages);
  i64 const low = d[along].low * slices, high = d[along].high * slices;
  bool const around = d[along].around;
  auto const bound = [&](i64 t) { return low + n * t / shares; };
  auto const wrapped = [&](i64 i) { return i < low ? i + n : i >= high ? i - n : i; };
  auto const march = [&](i64 from, i64 to, auto const& first, auto const& end) {
    parts->emplace_back();
    for (auto const& tile : tiles)
      for (auto const& strip : strips)
        for (i64 m = from; m < to; ++m)
          for (int s = 0; s < stages; ++s)
            if (i64 const i = m - s; i >= first(s) && i < end(s)) batch(s, wrapped(i), tile[std::size_t(s)], strip[std::size_t(s)]);
  };
  begin_phase();
  for (i64 t = 0; t < shares; ++t) {
    i64 const a = bound(t), b = bound(t + 1);
    bool const seam_before = around || t > 0, seam_after = around || t + 1 < shares;
    march(a, b + stages, [&](int s) { return a + (seam_before ? s : 0); }, [&](int s) { return b - (seam_after ? s : 0); });
  }
  begin_phase();
  for (i64 t = 0; t < shares; ++t) {
    if (t + 1 == shares && !around) break;
    i64 const e = bound(t + 1);
    march(e - stages, e + 2 * i64(stages), [&](int s) { return e - s; }, [&](int s) { return e + s; });
  }
  if (held > 0) hold(domain, held, along == 0 && domain.dimensions() == 3 && slices > 1 ? 9 : 0);
}

/// A slot is free after the last batch that reads it, if all of them are of the part that wrote it; else after the phase. along_step: of
/// the neighbours' numbers, where a brick is several batches: the bricks before and after it read one of these only.
void BrickSchedule::hold(BrickDomain const& domain, int stages, i64 along_step) {
  auto const bricks = std::size_t(domain.bricks() + domain.ghost_bricks());
  int const d = domain.dimensions(), all = d == 3 ? 27 : d == 2 ? 9 : 3, planes = int(domain.brick()[0]);
  struct Use {
    int phase = -1, part = 0;
    i64 batch = 0;
    bool shared = false, split = false;  // of several parts; written by several parts of a phase, which may be at any time of it
  };
  std::vector<Use> last(bricks * std::size_t(stages));
  auto const each_batch = [&](auto const& f) {
    i64 number = 0;
    for (int phase = 0; phase < int(phases_.size()); ++phase) {
      auto const& parts = phases_[std::size_t(phase)];
      for (int part = 0; part < int(parts.size()); ++part)
        for (auto const& batch : parts[std::size_t(part)]) f(phase, part, number++, batch);
    }
    return number;
  };
  i64 const batches = each_batch([&](int phase, int part, i64 number, Batch const& batch) {
    auto const use = [&](int stage, i64 brick) {
      auto& u = last[std::size_t(stage) * bricks + std::size_t(brick)];
      bool const same = u.phase < 0 || (u.phase == phase && u.part == part);
      u = {phase, part, number, u.shared || !same, u.split || (u.phase == phase && u.part != part)};
    };
    for (i64 n = batch.begin; n < batch.begin + batch.count; ++n) {
      int const brick = numbers_[std::size_t(n)];
      if (batch.stage < stages) use(batch.stage, brick);
      if (batch.stage == 0 || batch.stage > stages) continue;
      int const* const near = domain.neighbours().as<int>() + i64(all) * brick;
      for (int q = 0; q < all; ++q) {
        if (std::size_t(near[q]) >= bricks) continue;
        if (along_step > 0 && ((q < along_step && batch.first > 0) || (q >= 2 * along_step && batch.last < planes))) continue;
        use(batch.stage - 1, near[q]);
      }
    }
  });
  slots_of_stage_ = bricks + 1;
  slots_.assign(slots_of_stage_ * std::size_t(stages), 0);
  slot_count_ = 1;
  std::vector<std::vector<int>> spare, after;  // slots of each part; those that a batch is the last one to read
  after.resize(std::size_t(batches));
  std::vector<std::vector<std::pair<int, int>>> after_phase(phases_.size());
  int now = 0;
  auto const end_of_phases = [&](int until) {
    for (; now < until; ++now)
      for (auto const& [part, slot] : after_phase[std::size_t(now)]) spare[std::size_t(part)].push_back(slot);
  };
  each_batch([&](int phase, int part, i64 number, Batch const& batch) {
    end_of_phases(phase);
    if (spare.size() <= std::size_t(part)) spare.resize(std::size_t(part) + 1);
    auto& mine = spare[std::size_t(part)];
    for (i64 n = batch.begin; batch.stage < stages && n < batch.begin + batch.count; ++n) {
      auto const brick = std::size_t(numbers_[std::size_t(n)]);
      auto& slot = slots_[std::size_t(batch.stage) * slots_of_stage_ + brick];
      if (slot > 0) continue;
      auto const& u = last[std::size_t(batch.stage) * bricks + brick];
      if (mine.empty() || u.split) mine.push_back(int(slot_count_++));
      slot = mine.back(), mine.pop_back();
      if (u.shared) after_phase[std::size_t(u.phase)].emplace_back(part, slot);
      else after[std::size_t(u.batch)].push_back(slot);
    }
    for (int const slot : after[std::size_t(number)]) mine.push_back(slot);
  });
}

}  // namespace asterism::grid
