// The product of a matrix's transpose and a vector.
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/la/matrix_data.hpp"
#include "asterism/la/products/matrix_product.hpp"

namespace asterism::la {

void Matrix::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  comm::collective(comm(), "transposed product", [&] { transposed_product(x, y, conjugate); });
}

void Matrix::transposed_product(Vector const& x, Vector& y, bool conjugate) const {
  auto& d = *data_;
  ASTERISM_REQUIRE(!d.product_only, unsupported, "{} has been reduced to what its products need, and has no transposed product.",
                   describe());
  require_layout(x, d.rows, d.dtype, "transposed product");
  require_layout(y, d.columns, d.dtype, "transposed product");
  require_distinct("transposed product", "x", x, "y", y);
  conjugate = conjugate && is_complex(d.dtype);
  if (reproducible()) {
    return d.ordered_transposed[conjugate].made_by([&] { return la::transposed(*this, conjugate); }).apply(x, y);
  }
  auto const& t = d.transposed[conjugate].made_by([&] {
    return Products::Transposed{choose_format(la::transpose(d.block(), conjugate)),
                                std::make_shared<CsrFormat const>(la::transpose(d.coupling, conjugate))};
  });
  auto const k = x.columns();
  static int const event = profile::event("MatMultTranspose");
  profile::Scope const scope(event, t.diagonal->bytes(k) + t.coupling->bytes(k), 2 * double(d.local_nnz * k));
  auto const& queue = y.queue();
  t.diagonal->run(queue, Epilogue::assign, k, x.data(), y.data());
  if (comm().size() == 1) return;
  auto const ghost = Array::fresh(queue, d.ghosts.size() * std::size_t(k) * size_of(d.dtype));
  t.coupling->run(queue, Epilogue::assign, k, x.data(), ghost);
  d.halo.reduce(queue, d.dtype, k, ghost, y.data());
}

}  // namespace asterism::la
