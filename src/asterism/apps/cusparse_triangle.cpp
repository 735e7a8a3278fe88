#include "asterism/apps/cusparse_triangle.hpp"

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/la/formats/csr/cusparse_library.hpp"

namespace asterism::apps {

namespace gpu = device::gpu;
using la::Cusparse;

struct CusparseTriangle::Impl {
  Dtype dtype;
  int operation;
  std::int64_t n;
  void *matrix = nullptr, *solve = nullptr;
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  Block offsets, columns, values, b, x, buffer;

  Block copied(void const* data, std::size_t bytes) {
    Block out{gpu::allocate(std::max<std::size_t>(bytes, 16), gpu::threads_stream()), std::max<std::size_t>(bytes, 16)};
    gpu::wait(gpu::threads_stream());
    if (data && bytes > 0) gpu::copy_now(out.data, data, bytes);
    return out;
  }
  template <class T>
  Block converted(std::vector<double> const& from) {
    std::vector<T> to;
    for (auto const v : from) to.push_back(T(real_t<T>(v)));
    return copied(to.data(), to.size() * sizeof(T));
  }
  ~Impl() {
    auto& c = la::cusparse();
    if (solve) c.destroy_solve(solve);
    if (matrix) c.destroy_matrix(matrix);
    for (auto const& block : {offsets, columns, values, b, x, buffer})
      if (block.data) gpu::release(block.data, block.bytes);
  }
};

CusparseTriangle::CusparseTriangle(std::vector<std::int32_t> const& offsets, std::vector<std::int32_t> const& columns,
                                   std::vector<double> const& values, Dtype dtype, bool transposed)
    : impl_(std::make_unique<Impl>()) {
  auto& c = la::cusparse();
  ASTERISM_REQUIRE(c, unsupported, "there is no cuSPARSE: {}. ASTERISM_CUSPARSE names its file; pip install nvidia-cusparse has it.",
                   c.why_not);
  ASTERISM_REQUIRE(c.create_solve && c.destroy_solve && c.solve_buffer_size && c.analyse && c.solve && c.set_attribute, unsupported,
                   "this cuSPARSE has no SpSV; version 11.3 or newer has.");
  gpu::OnDevice const here;
  auto& m = *impl_;
  m.dtype = dtype;
  m.n = std::int64_t(offsets.size()) - 1;
  m.operation = transposed ? Cusparse::transpose : Cusparse::non_transpose;
  m.offsets = m.copied(offsets.data(), offsets.size() * sizeof(std::int32_t));
  m.columns = m.copied(columns.data(), columns.size() * sizeof(std::int32_t));
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    m.values = m.converted<T>(values);
    m.b = m.copied(nullptr, std::size_t(m.n) * sizeof(T));
    m.x = m.copied(nullptr, std::size_t(m.n) * sizeof(T));
    c.check(c.create_csr(&m.matrix, m.n, m.n, std::int64_t(values.size()), m.offsets.data, m.columns.data, m.values.data,
                         Cusparse::index_32, Cusparse::index_32, Cusparse::base_zero, la::value_type<T>()),
            "cusparseCreateCsr");
    int lower = Cusparse::lower, unit = Cusparse::unit;
    c.check(c.set_attribute(m.matrix, Cusparse::fill_mode, &lower, sizeof lower), "cusparseSpMatSetAttribute");
    c.check(c.set_attribute(m.matrix, Cusparse::diagonal_type, &unit, sizeof unit), "cusparseSpMatSetAttribute");
    c.check(c.create_solve(&m.solve), "cusparseSpSV_createDescr");
    T const one(1);
    la::CusparseVector const b(m.n, static_cast<T const*>(m.b.data)), x(m.n, static_cast<T const*>(m.x.data));
    std::lock_guard const lock(c.mutex);
    c.check(c.set_stream(c.handle, gpu::threads_stream()), "cusparseSetStream");
    std::size_t bytes = 0;
    c.check(c.solve_buffer_size(c.handle, m.operation, &one, m.matrix, b.get(), x.get(), la::value_type<T>(), Cusparse::solve_default,
                                m.solve, &bytes),
            "cusparseSpSV_bufferSize");
    m.buffer = m.copied(nullptr, bytes);
    c.check(c.analyse(c.handle, m.operation, &one, m.matrix, b.get(), x.get(), la::value_type<T>(), Cusparse::solve_default, m.solve,
                      m.buffer.data),
            "cusparseSpSV_analysis");
    gpu::wait(gpu::threads_stream());
  });
}

CusparseTriangle::~CusparseTriangle() = default;

std::vector<double> CusparseTriangle::time(std::vector<double> const& b, int repeats, std::vector<double>& x) {
  auto& c = la::cusparse();
  auto& m = *impl_;
  gpu::OnDevice const here;
  return with_dtype(m.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> host;
    for (auto const v : b) host.push_back(T(real_t<T>(v)));
    gpu::copy_now(m.b.data, host.data(), host.size() * sizeof(T));
    T const one(1);
    la::CusparseVector const from(m.n, static_cast<T const*>(m.b.data)), to(m.n, static_cast<T const*>(m.x.data));
    auto* const stream = gpu::threads_stream();
    std::vector<double> out;
    std::lock_guard const lock(c.mutex);
    c.check(c.set_stream(c.handle, stream), "cusparseSetStream");
    for (int i = 0; i <= repeats; ++i) {
      double const start = profile::now();
      c.check(c.solve(c.handle, m.operation, &one, m.matrix, from.get(), to.get(), la::value_type<T>(), Cusparse::solve_default, m.solve),
              "cusparseSpSV_solve");
      gpu::wait(stream);
      if (i > 0) out.push_back(profile::now() - start);
    }
    gpu::copy_now(host.data(), m.x.data, host.size() * sizeof(T));
    x.clear();
    for (auto const v : host) x.push_back(double(real(v)));
    return out;
  });
}

}  // namespace asterism::apps
