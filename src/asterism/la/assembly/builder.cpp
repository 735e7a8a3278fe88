#include "asterism/la/assembly/builder.hpp"

#include <algorithm>
#include <cstring>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"

namespace asterism::la {

Builder::Builder(Layout rows, Layout columns, Dtype dtype, Remote remote)
    : rows_(std::move(rows)), columns_(std::move(columns)), dtype_(dtype), remote_(remote) {
  comm::Fact const facts[] = {{"dtype", std::string(name_of(dtype))}, {"remote", remote == Remote::send ? "send" : "error"}};
  comm::require_same(rows_.comm(), "Builder", facts);
}

void* Builder::Store::room(std::size_t kept, std::size_t bytes) {
  if (bytes > memory_.bytes()) {
    Array larger(std::max(bytes, 2 * kept));
    if (kept > 0) std::memcpy(larger.raw(), memory_.raw(), kept);
    memory_ = larger;
  }
  return static_cast<std::byte*>(memory_.raw()) + kept;
}

void Builder::add(std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j, void const* values) {
  ASTERISM_REQUIRE(turn_ % 2 == 0, value,
                   "Builder.add after Builder.insert: their order on other ranks is not known. Make all adds before the inserts, or "
                   "call flush() in between, on all ranks.");
  put("Builder.add", turn_, count, i, j, values);
}

void Builder::insert(std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j, void const* values) {
  put("Builder.insert", turn_ | 1, count, i, j, values);
  turn_ |= 1;
}

void Builder::flush() {
  ++flushes_;
  turn_ = 2 * flushes_;
}

void Builder::put(char const* what, int turn, std::int64_t count, std::span<std::int64_t const> i, std::span<std::int64_t const> j,
                  void const* values) {
  if (count == 0 || i.empty() || j.empty()) return;
  Run const given{count, std::int64_t(i.size()) / count, std::int64_t(j.size()) / count, turn};
  ASTERISM_ASSERT(given.m * count == std::int64_t(i.size()) && given.n * count == std::int64_t(j.size()));
  auto const number = count * given.m * given.n;
  auto const told = [&](std::int64_t e, std::int64_t row, std::int64_t column, std::string_view why) {
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = static_cast<T const*>(values)[e];
      if constexpr (is_complex_v<T>)
        fail(ErrorKind::value, "{}: entry {}, ({}, {}, {} + {}i), is {}.", what, e, row, column, double(v.re), double(v.im), why);
      else fail(ErrorKind::value, "{}: entry {}, ({}, {}, {}), is {}.", what, e, row, column, double(v), why);
    });
  };
  if (auto const bad = first_bad_entry(EntryStack<std::int64_t>{i.data(), j.data(), count, given.m, given.n}, rows_, &columns_, remote_))
    told(bad->number, bad->i, bad->j, bad->why);
  if (auto const e = first_not_finite(dtype_, number, values); e >= 0)
    told(e, i[std::size_t(e / given.n)], j[std::size_t(e / given.n / given.m * given.n + e % given.n)],
         "NaN or infinite. Look for a division by zero or an overflow where it is computed");

  if (known_ && !follows(given, i.data(), j.data())) forget_the_rest();
  auto const index = sizeof(std::int64_t), scalar = size_of(dtype_);
  // all room first: where there is none, nothing is added
  auto* const value_room = values_.room(std::size_t(last_.value) * scalar, std::size_t(last_.value + number) * scalar);
  if (!known_) {
    auto* const i_room = i_.room(std::size_t(last_.row) * index, (std::size_t(last_.row) + i.size()) * index);
    auto* const j_room = j_.room(std::size_t(last_.column) * index, (std::size_t(last_.column) + j.size()) * index);
    if (runs_.size() == runs_.capacity()) runs_.reserve(2 * runs_.size() + 4);
    std::memcpy(i_room, i.data(), i.size_bytes());
    std::memcpy(j_room, j.data(), j.size_bytes());
    if (runs_.empty() || runs_.back().m != given.m || runs_.back().n != given.n || runs_.back().turn != turn)
      runs_.push_back({0, given.m, given.n, turn});
    runs_.back().count += count;
  }
  std::memcpy(value_room, values, std::size_t(number) * scalar);
  last_.row += std::int64_t(i.size());
  last_.column += std::int64_t(j.size());
  last_.value += number;
  if (!known_) return;
  last_.blocks += count;
  if (last_.blocks == runs_[last_.run].count) ++last_.run, last_.blocks = 0;
}

bool Builder::follows(Run const& given, std::int64_t const* i, std::int64_t const* j) const {
  if (last_.run == runs_.size()) return false;
  auto const& run = runs_[last_.run];
  return run.m == given.m && run.n == given.n && run.turn == given.turn && last_.blocks + given.count <= run.count &&
         std::equal(i, i + given.count * given.m, static_cast<std::int64_t const*>(i_.data()) + last_.row) &&
         std::equal(j, j + given.count * given.n, static_cast<std::int64_t const*>(j_.data()) + last_.column);
}

void Builder::forget_the_rest() {
  known_ = false;
  if (last_.run == runs_.size()) return;
  runs_[last_.run].count = last_.blocks;
  runs_.resize(last_.run + (last_.blocks > 0 ? 1 : 0));
}

Matrix Builder::matrix() {
  static int const event = profile::event("MatBuild");
  profile::Scope const scope(event);
  auto const& comm = rows_.comm();
  auto const least = comm.min(std::int64_t(flushes_));
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(flushes_ == least, value, "Builder.matrix: flush() was called {} times on this rank, and {} times on another.",
                     flushes_, least);
  });
  if (known_ && last_.run < runs_.size()) forget_the_rest();
  bool const same = plan_ && comm.min(std::int64_t(known_ ? 1 : 0)) > 0;
  if (!same) {
    plan_.reset();
    std::vector<EntryStack<std::int64_t>> stacks;
    auto const *i = static_cast<std::int64_t const*>(i_.data()), *j = static_cast<std::int64_t const*>(j_.data());
    std::int64_t first = 0;
    for (auto const& run : runs_) {
      stacks.push_back({i, j, run.count, run.m, run.n, first, run.turn});
      i += run.count * run.m;
      j += run.count * run.n;
      first += run.count * run.m * run.n;
    }
    plan_.emplace(rows_, columns_, std::span<EntryStack<std::int64_t> const>(stacks), remote_, "Builder");
  }
  auto const bytes = std::size_t(last_.value) * size_of(dtype_);
  auto out = plan_->matrix(Vector::wrap(plan_->entries(), dtype_, 1, Array::wrap(values_.data(), bytes, nullptr)));
  last_ = {};
  known_ = true;
  turn_ = flushes_ = 0;
  return out;
}

}  // namespace asterism::la
