// Dense matrices from the library's, and the library's from dense ones.
#include <span>

#include "harness/dense.hpp"

namespace asterism::test {

using std::int64_t;

la::Layout uneven(comm::Communicator const& comm, int64_t n) {
  std::vector<int64_t> offsets;
  for (int r = 0; r <= comm.size(); ++r) offsets.push_back(r <= 1 && comm.size() > 1 ? 0 : n * r * r / (comm.size() * comm.size()));
  return la::Layout::from_offsets(comm, offsets);
}

la::Matrix to_sparse(Dense const& a, la::Layout const& rows, la::Layout const& columns, Dtype dtype) {
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<int64_t> offsets{0}, cols;
    std::vector<T> values;
    for (auto i = rows.begin(); i < rows.end(); ++i) {
      for (int64_t j = 0; j < a.cols(); ++j)
        if (a(i, j) != Value(0) || i == j) cols.push_back(j), values.push_back(from_complex<T>(a(i, j)));
      offsets.push_back(int64_t(cols.size()));
    }
    return la::Matrix::from_rows<int64_t>(rows, columns, dtype, offsets, cols, values.data());
  });
}

namespace {
/// Each rank's (i, j, value), summed into a dense matrix on all.
struct Entry {
  int64_t i, j;
  Value v;
};
Dense summed(comm::Communicator const& comm, int64_t rows, int64_t cols, std::vector<Entry> const& mine) {
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span<Entry const>(mine)));
  Dense a(rows, cols);
  auto const* const entries = reinterpret_cast<Entry const*>(all.data());
  for (std::size_t e = 0; e < all.size() / sizeof(Entry); ++e) a(entries[e].i, entries[e].j) += entries[e].v;
  return a;
}
}  // namespace

Dense to_dense(la::Matrix const& A) {
  auto const rows = A.to_rows();
  std::vector<Entry> mine;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < A.range().local_size(); ++i)
      for (auto p = rows.offsets[std::size_t(i)]; p < rows.offsets[std::size_t(i) + 1]; ++p)
        mine.push_back({A.range().begin() + i, rows.columns[std::size_t(p)], to_complex(rows.values.as<T>()[p])});
  });
  return summed(A.comm(), A.global_rows(), A.global_cols(), mine);
}

la::Vector to_vector(Dense const& x, la::Layout const& layout, Dtype dtype) {
  la::Vector v(layout, dtype, x.cols());
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const to = v.host<T>();
    for (int64_t i = 0; i < layout.local_size(); ++i)
      for (int64_t j = 0; j < x.cols(); ++j) to[std::size_t(i * x.cols() + j)] = from_complex<T>(x(layout.begin() + i, j));
  });
  return v;
}

Dense to_dense(la::Vector const& x) {
  std::vector<Entry> mine;
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const from = x.host<T>();
    for (int64_t i = 0; i < x.local_size(); ++i)
      for (int64_t j = 0; j < x.columns(); ++j)
        mine.push_back({x.layout().begin() + i, j, to_complex(from[std::size_t(i * x.columns() + j)])});
  });
  return summed(x.comm(), x.global_size(), x.columns(), mine);
}

Dense columns_of(la::Operator const& op) {
  auto const x = to_vector(Dense::identity(op.domain().global_size()), op.domain(), op.dtype());
  la::Vector y(op.range(), op.dtype(), x.columns());
  op.apply(x, y);
  return to_dense(y);
}

Dense columns_of_transpose(la::Operator const& op, bool conjugate) {
  auto const x = to_vector(Dense::identity(op.range().global_size()), op.range(), op.dtype());
  la::Vector y(op.domain(), op.dtype(), x.columns());
  op.apply_transpose(x, y, conjugate);
  return to_dense(y);
}

solve::Solver solver(la::Matrix const& A, std::string const& options) {
  Options o;
  o.parse(options, OptionLayer::call, "test");
  return solve::Solver(A, o);
}

std::string error_of(std::function<void()> const& f) {
  try {
    f();
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace asterism::test
