#include "asterism/la/assembly/entry_sums.hpp"

#include "asterism/base/limits.hpp"

namespace asterism::la {

EntrySums::EntrySums(Layout all, std::span<std::int64_t const> numbers, std::int64_t largest)
    : entries(std::move(all)), received(std::int64_t(numbers.size())) {
  narrow = std::max(entries.local_size() + received, largest) < limits().narrow_index;
  if (entries.comm().max(received) == 0) return;
  auto forest = comm::StarForest::from_layout(entries, numbers);
  forest.set_name("entries of other ranks");
  others.emplace(std::move(forest));
}

void EntrySums::check(char const* what, Vector const& values, std::optional<Dtype> added_to) const {
  auto const& comm = entries.comm();
  auto const mine = 2 * std::int64_t(values.dtype()) + (added_to ? 1 : 0), least = comm.min(mine);
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(values.local_size() == entries.local_size() && values.columns() == 1, shape,
                     "{}: values of shape ({}, {}) for {} entries of rank {}.", what, values.local_size(), values.columns(),
                     entries.local_size(), comm.rank());
    ASTERISM_REQUIRE(mine / 2 == least / 2, dtype, "{}: the values of this rank are {}, and {} on another.", what, name_of(values.dtype()),
                     name_of(Dtype(least / 2)));
    ASTERISM_REQUIRE(mine == least, value, "{}: this rank adds to a matrix, another does not. Give one on all, or on none.", what);
    ASTERISM_REQUIRE(!added_to || *added_to == values.dtype(), dtype, "{}: {} values are added to a {} matrix.", what,
                     name_of(values.dtype()), name_of(*added_to));
  });
}

namespace {
template <class I, class T>
void run_sums(EntrySums const& s, Vector const& values, std::span<Array const> base, std::span<Array const> out) {
  auto const& queue = values.queue();
  auto const from_others = Array::fresh(queue, std::size_t(s.received) * sizeof(T));
  std::optional<comm::QueuedForest::Flight> flight;
  if (s.others) flight = s.others->bcast_begin(queue, dtype_v<T>, 1, values.data(), from_others);
  for (std::size_t a = 0; a < out.size(); ++a)
    device::submit(queue, kernel::sum_entries<I, T>, s.arrays[a].entries, device::read<I>(s.arrays[a].offsets),
                   device::read<I>(s.arrays[a].sources), device::read<T>(values.data()), device::read<T>(base[a]),
                   device::write<T>(out[a]));
  if (flight) flight->end();
  for (std::size_t a = 0; a < out.size(); ++a)
    if (auto const& sums = s.arrays[a]; sums.received > 0)
      device::submit(queue, kernel::sum_received_entries<I, T>, sums.received, device::read<I>(sums.received_places),
                     device::read<I>(sums.received_offsets), device::read<I>(sums.received_sources), s.entries.local_size(),
                     device::read<T>(values.data()), device::read<T>(from_others), device::read<T>(base[a]), device::update<T>(out[a]));
}
}  // namespace

void EntrySums::run(Vector const& values, std::span<Array const> base, std::span<Array const> out) const {
  with_dtype(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_index([&]<class I>(I) { run_sums<I, T>(*this, values, base, out); });
  });
}

}  // namespace asterism::la
