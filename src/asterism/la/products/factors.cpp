#include "asterism/la/products/factors.hpp"

#include "asterism/base/format.hpp"

namespace asterism::la {
namespace {

/// Sizes and layouts; the same on all ranks but for the numbers of own rows.
void check_fit(Factor const& left, Factor const& right) {
  auto const &inner = left.domain(), &outer = right.range();
  ASTERISM_REQUIRE(inner.global_size() == outer.global_size(), shape,
                   "product: a {} matrix times a {} matrix; the {} columns are not as many as the {} rows.", size_text(left.range(), inner),
                   size_text(outer, right.domain()), inner.global_size(), outer.global_size());
  ASTERISM_REQUIRE(
      inner.fits(outer), shape,
      "product: the ranks share the {} columns of the left matrix otherwise than the rows of the right one ({} and {} on rank {}). "
      "Move one of them (am.Redistribution, am.Submatrix).",
      inner.global_size(), inner.local_size(), outer.local_size(), inner.comm().rank());
}

}  // namespace

std::string size_text(Space const& rows, Space const& columns) { return format("{} x {}", rows.global_size(), columns.global_size()); }

void check_factors(std::span<Factor const> factors) {
  ASTERISM_REQUIRE(factors.size() >= 2, value, "product: {} factor(s); two or more are needed.", factors.size());
  auto const& comm = factors[0].matrix.comm();
  for (auto const& f : factors)
    ASTERISM_REQUIRE(f.matrix.comm() == comm, comm, "product: the factors are on different communicators ({} and {} ranks).", comm.size(),
                     f.matrix.comm().size());
  auto forms = std::int64_t(factors.size());
  for (auto const& f : factors) forms = 3 * forms + std::int64_t(f.form);
  ASTERISM_REQUIRE(comm.same_on_all_ranks(forms), value,
                   "product: the ranks give different numbers of factors, or other ones transposed ({} factors on rank {}).",
                   factors.size(), comm.rank());
  comm::agree(comm, [&] {
    for (std::size_t i = 0; i + 1 < factors.size(); ++i) check_fit(factors[i], factors[i + 1]);
  });
}

Dtype dtype_of(std::span<Factor const> factors) {
  auto d = factors[0].matrix.dtype();
  for (auto const& f : factors) d = promote(d, f.matrix.dtype());
  return d;
}

Space const& space_of(Factor const& f) {
  auto const& A = f.matrix;
  return A.range().fits(A.domain()) ? A.range() : f.range();
}

Space space_of_product(std::span<Factor const> factors) {
  auto const &first = factors.front(), &last = factors.back();
  Space const plain = static_cast<Layout const&>(first.range());
  if (!plain.fits(last.domain())) return plain;
  if (last.range().fits(last.domain()) && space_of(last).has_meaning()) return space_of(last);
  auto const size = space_of(first).block_size();
  return size > 1 ? plain.with_block_size(size) : plain;
}

std::string describe(std::span<Factor const> factors) {
  std::string text = "product of " + size_text(factors[0].range(), factors[0].domain());
  for (auto const& f : factors.subspan(1)) text += " and " + size_text(f.range(), f.domain());
  return text;
}

}  // namespace asterism::la
