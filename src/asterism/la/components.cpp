#include "asterism/la/components.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "asterism/base/profile.hpp"
#include "asterism/la/union_find.hpp"

namespace asterism::la {
namespace {

using Link = std::array<std::int64_t, 2>;  // first rows of components that touch

/// What all ranks have, in their order.
template <class T>
std::vector<T> gathered(comm::Communicator const& comm, std::vector<T> const& mine) {
  auto const bytes = comm.all_gather_bytes(std::as_bytes(std::span<T const>(mine)));
  std::vector<T> all(bytes.size() / sizeof(T));
  if (!all.empty()) std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
  return all;
}

template <class T>
void sort_and_drop_repeats(std::vector<T>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

template <class T>
std::int32_t place_in(std::vector<T> const& ascending, T const& v) {
  auto const at = std::lower_bound(ascending.begin(), ascending.end(), v);
  return at != ascending.end() && *at == v ? std::int32_t(at - ascending.begin()) : -1;
}

int search_event() {
  static int const event = profile::event("MatComponents");
  return event;
}

/// The diagonal block of a matrix that may hold half of it, which is not made whole for good.
Csr block_of(Matrix const& A) { return A.half() ? A.half()->expanded() : A.diagonal_block(); }

}  // namespace

Components::Components(Matrix const& A) : rows_(A.range()) {
  profile::Scope const scope(search_event());
  auto const n = std::int32_t(rows_.local_size());
  auto const &block = block_of(A), &coupling = A.coupling_block();
  UnionFind sets(n + std::int32_t(A.ghosts().size()));
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const join_entries = [&](Csr const& a, std::int32_t first_column) {
      auto const* const ptr = a.row_offsets().data();
      auto const* const col = a.column_indices().data();
      auto const* const val = a.template entries<T>().data();
      for (std::int32_t i = 0; i < a.rows; ++i) {
        auto set = sets.find(i);
        for (auto p = ptr[i]; p < ptr[i + 1]; ++p)
          if (val[p] != T(0)) set = sets.join(set, first_column + col[p]);
      }
    };
    join_entries(block, 0);
    join_entries(coupling, n);
  });
  of_.resize(std::size_t(n));
  for (std::int32_t i = 0; i < n; ++i) {  // sets are known by their least members, and own rows come before ghosts
    auto const least = sets.find(i);
    if (least == i) first_.push_back(rows_.begin() + i);
    of_[std::size_t(i)] = least == i ? std::int32_t(first_.size()) - 1 : of_[std::size_t(least)];
  }
  if (rows_.comm().size() > 1) {
    std::vector<std::int64_t> touching(A.ghosts().size(), -1);
    for (std::size_t g = 0; g < touching.size(); ++g)
      if (auto const least = sets.find(n + std::int32_t(g)); least < n) touching[g] = first_[std::size_t(of_[std::size_t(least)])];
    join_over_ranks(A, touching);
  }
  count_ = std::count_if(first_.begin(), first_.end(), [this](std::int64_t f) { return f >= rows_.begin(); });
  count_ = rows_.comm().sum(count_);
}

/// touching: of each ghost the first row here of the component that it belongs to, or -1.
void Components::join_over_ranks(Matrix const& A, std::span<std::int64_t const> touching) {
  std::vector<std::int64_t> own(of_.size()), there(touching.size());
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = first_[std::size_t(of_[i])];
  A.halo().bcast(own.data(), there.data());
  std::vector<Link> links;
  for (std::size_t g = 0; g < there.size(); ++g)
    if (Link const link{touching[g], there[g]}; link[0] >= 0 && (links.empty() || links.back() != link)) links.push_back(link);
  sort_and_drop_repeats(links);
  links = gathered(rows_.comm(), links);
  std::vector<std::int64_t> ends;
  for (auto const& link : links) ends.insert(ends.end(), link.begin(), link.end());
  sort_and_drop_repeats(ends);
  UnionFind sets(std::int32_t(ends.size()));
  for (auto const& link : links) sets.join(place_in(ends, link[0]), place_in(ends, link[1]));
  std::vector<std::int32_t> number(ends.size());  // of each set that spans ranks
  for (std::size_t e = 0; e < ends.size(); ++e) {
    auto const least = sets.find(std::int32_t(e));
    number[e] = least == std::int32_t(e) ? std::int32_t(shared_count_++) : number[std::size_t(least)];
  }
  // several components here may be one by way of other ranks
  std::vector<std::int32_t> renumbered(first_.size()), of_shared(std::size_t(shared_count_), -1);
  std::vector<std::int64_t> first;
  for (std::size_t c = 0; c < first_.size(); ++c) {
    auto const end = place_in(ends, first_[c]);
    auto const shared = end < 0 ? -1 : number[std::size_t(end)];
    if (shared >= 0 && of_shared[std::size_t(shared)] >= 0) {
      renumbered[c] = of_shared[std::size_t(shared)];
      continue;
    }
    renumbered[c] = std::int32_t(first.size());
    if (shared >= 0) of_shared[std::size_t(shared)] = renumbered[c];
    first.push_back(end < 0 ? first_[c] : ends[std::size_t(sets.find(end))]);
    shared_.push_back(shared);
  }
  first_ = std::move(first);
  for (auto& c : of_) c = renumbered[std::size_t(c)];
}

template <class F>
void Components::combine(std::span<double> values, std::int64_t each, F const& over_ranks) const {
  if (shared_count_ == 0) return;
  auto const k = std::size_t(each);
  std::vector<double> all(std::size_t(shared_count_) * k, 0);
  for (std::size_t c = 0; c < shared_.size(); ++c)
    if (shared_[c] >= 0) std::copy_n(values.data() + c * k, k, all.data() + std::size_t(shared_[c]) * k);
  over_ranks(std::span(all));
  for (std::size_t c = 0; c < shared_.size(); ++c)
    if (shared_[c] >= 0) std::copy_n(all.data() + std::size_t(shared_[c]) * k, k, values.data() + c * k);
}

void Components::sum(std::span<double> values, std::int64_t each) const {
  combine(values, each, [this](std::span<double> all) { rows_.comm().sum(all); });
}
void Components::max(std::span<double> values, std::int64_t each) const {
  combine(values, each, [this](std::span<double> all) { rows_.comm().max(all); });
}

std::vector<std::int64_t> Components::chosen(std::span<char const> flags) const {
  std::vector<std::int64_t> mine;
  for (std::size_t c = 0; c < flags.size(); ++c)
    if (flags[c] && first_[c] >= rows_.begin()) mine.push_back(first_[c]);
  return gathered(rows_.comm(), mine);
}

bool marks_spread(Matrix const& A, std::vector<std::uint64_t> marks, std::uint64_t all) {
  profile::Scope const scope(search_event());
  constexpr int rounds = 3;
  auto const& comm = A.comm();
  auto const &block = block_of(A), &coupling = A.coupling_block();
  auto const n = std::int32_t(A.range().local_size());
  marks.resize(std::size_t(n) + A.ghosts().size());
  std::int64_t left = A.global_rows() * std::popcount(all);  // marks that are missing
  for (int round = 0; round <= rounds; ++round) {
    if (comm.size() > 1) A.halo().bcast(marks.data(), marks.data() + n);
    auto const before = left;
    left = 0;
    for (std::int32_t i = 0; i < n; ++i) left += std::popcount(all & ~marks[std::size_t(i)]);
    left = comm.sum(left);
    if (left == 0) return true;
    if (round == rounds || left == before) return false;
    with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const take_from = [&](Csr const& a, std::int32_t i, std::int32_t first_column) {
        auto const* const ptr = a.row_offsets().data();
        auto const* const col = a.column_indices().data();
        auto const* const val = a.template entries<T>().data();
        auto mark = marks[std::size_t(i)];
        for (auto p = ptr[i]; p < ptr[i + 1] && mark != all; ++p)
          if (val[p] != T(0)) mark |= marks[std::size_t(first_column + col[p])];
        marks[std::size_t(i)] = mark;
      };
      auto const visit = [&](std::int32_t i) {
        if (marks[std::size_t(i)] == all) return;
        take_from(block, i, 0);
        take_from(coupling, i, n);
      };
      for (std::int32_t i = 0; i < n; ++i) visit(i);
      for (std::int32_t i = n; i-- > 0;) visit(i);
    });
  }
  return false;
}

}  // namespace asterism::la
