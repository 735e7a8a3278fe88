#include "asterism/la/formats/csr/cusparse.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <tuple>

#include "asterism/base/error.hpp"
#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/la/formats/csr/cusparse_library.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"

namespace asterism::la {
namespace {

namespace gpu = device::gpu;
using device::Executor;

// Below, launches are taken to be most of the time (not measured on a GPU yet), and those of cuSPARSE cannot be part of a graph.
constexpr std::int64_t least_entries = std::int64_t(1) << 18;

std::atomic<GpuProduct> chosen{GpuProduct::automatic};

struct Measured {
  std::mutex mutex;
  std::vector<MeasuredProduct> all;
};
Measured& measured() {
  static auto* const m = new Measured;
  return *m;
}

/// What was found for such a block before, if anything.
std::optional<bool> known(Dtype dtype, std::int32_t rows, std::int32_t cols, std::int64_t entries) {
  std::lock_guard const lock(measured().mutex);
  for (auto const& m : measured().all)
    if (std::tie(m.dtype, m.rows, m.cols, m.entries) == std::tie(dtype, rows, cols, entries)) return m.cusparse_taken;
  return std::nullopt;
}

}  // namespace

void set_gpu_product(GpuProduct choice) { chosen = choice; }
GpuProduct gpu_product() { return chosen; }

void require_gpu_product() {
  ASTERISM_REQUIRE(chosen.load() != GpuProduct::cusparse || cusparse(), unsupported,
                   "-mat_gpu_product cusparse: there is no cuSPARSE: {}. ASTERISM_CUSPARSE names its file; "
                   "pip install nvidia-cusparse has it.",
                   cusparse().why_not);
}

std::vector<MeasuredProduct> measured_products() {
  std::lock_guard const lock(measured().mutex);
  return measured().all;
}

/// What one stream works with: its buffer is not shared.
struct CusparseProduct::OfStream {
  void* matrix = nullptr;
  void* buffer = nullptr;
  std::size_t buffer_bytes = 0, result_bytes = 0;
  void* result = nullptr;  // where a product goes that may turn out not to be wanted
  std::int32_t rows, cols;

  OfStream(std::int32_t rows, std::int32_t cols) : rows(rows), cols(cols) {}
  OfStream(OfStream const&) = delete;
  OfStream& operator=(OfStream const&) = delete;
  ~OfStream() {
    if (matrix) cusparse().destroy_matrix(matrix);
    if (buffer) gpu::release(buffer, buffer_bytes);
    if (result) gpu::release(result, result_bytes);
  }

  template <class T>
  T* scratch(void* stream) {
    if (!result) {
      result_bytes = std::size_t(rows) * sizeof(T);
      result = gpu::allocate(result_bytes, stream);
    }
    return static_cast<T*>(result);
  }

  template <class T>
  void multiply(void* stream, T const* x, T* y) const {
    auto& c = cusparse();
    T const one(1), zero(0);
    CusparseVector const xs(cols, x), ys(rows, y);
    std::lock_guard const lock(c.mutex);
    c.check(c.set_stream(c.handle, stream), "cusparseSetStream");
    c.check(c.multiply(c.handle, Cusparse::non_transpose, &one, matrix, xs.get(), &zero, ys.get(), value_type<T>(),
                       Cusparse::deterministic_csr, buffer),
            "cusparseSpMV");
  }
};

std::shared_ptr<CusparseProduct> CusparseProduct::of(Dtype dtype, std::int32_t rows, std::int32_t cols,
                                                     std::span<std::int64_t const> offsets) {
  auto const choice = chosen.load();
  auto const entries = offsets.empty() ? 0 : offsets.back();
  if (choice == GpuProduct::own || rows == 0 || entries == 0) return nullptr;
  if (choice == GpuProduct::automatic && entries < least_entries) return nullptr;
  require_gpu_product();
  if (!cusparse()) {
    static std::once_flag told;
    std::call_once(told, [] { log::info("products on the GPU are ours: there is no cuSPARSE ({})", cusparse().why_not); });
    return nullptr;
  }
  if (entries > std::numeric_limits<std::int32_t>::max()) return nullptr;  // not tried with 64-bit offsets and 32-bit columns
  if (choice == GpuProduct::automatic && known(dtype, rows, cols, entries) == false) return nullptr;
  static std::once_flag forms;
  std::call_once(forms, [] {
    auto const set = [](auto* run) { gpu::set_form(reinterpret_cast<void*>(run), reinterpret_cast<void*>(run)); };
    set(&run<float>), set(&run<double>), set(&run<Complex<float>>), set(&run<Complex<double>>);
  });
  std::shared_ptr<CusparseProduct> out(new CusparseProduct(choice, dtype, rows, cols, entries));
  std::copy(offsets.begin(), offsets.end(), out->offsets_.as<std::int32_t>());
  return out;
}

CusparseProduct::CusparseProduct(GpuProduct choice, Dtype dtype, std::int32_t rows, std::int32_t cols, std::int64_t entries)
    : choice_(choice),
      dtype_(dtype),
      rows_(rows),
      cols_(cols),
      entries_(entries),
      offsets_((std::size_t(rows) + 1) * sizeof(std::int32_t)) {}

CusparseProduct::~CusparseProduct() = default;

/// The kernel of ours, with guards and graphs.
template <class T>
static void by_ours(Executor& executor, kernel::CsrRows<T> const& rows, T const* x, T* y) {
  gpu::form_of (&kernel::csr_product<T, T>)(executor, rows, Epilogue::assign, 1, x, y, nullptr, nullptr);
}

template <class T>
CusparseProduct::OfStream& CusparseProduct::of_stream(void* stream, kernel::CsrRows<T> const& rows, std::int32_t const* offsets,
                                                      T const* x) {
  auto& s = streams_[stream];
  if (s) return *s;
  auto& c = cusparse();
  auto made = std::make_unique<OfStream>(rows_, cols_);
  c.check(c.create_csr(&made->matrix, rows_, cols_, entries_, const_cast<std::int32_t*>(offsets), const_cast<std::int32_t*>(rows.columns),
                       const_cast<T*>(rows.values), Cusparse::index_32, Cusparse::index_32, Cusparse::base_zero, value_type<T>()),
          "cusparseCreateCsr");
  T const one(1), zero(0);
  CusparseVector const xs(cols_, x), ys(rows_, made->scratch<T>(stream));
  std::lock_guard const lock(c.mutex);
  c.check(c.set_stream(c.handle, stream), "cusparseSetStream");
  c.check(c.buffer_size(c.handle, Cusparse::non_transpose, &one, made->matrix, xs.get(), &zero, ys.get(), value_type<T>(),
                        Cusparse::deterministic_csr, &made->buffer_bytes),
          "cusparseSpMV_bufferSize");
  if (made->buffer_bytes > 0) made->buffer = gpu::allocate(made->buffer_bytes, stream);
  if (c.preprocess)
    c.check(c.preprocess(c.handle, Cusparse::non_transpose, &one, made->matrix, xs.get(), &zero, ys.get(), value_type<T>(),
                         Cusparse::deterministic_csr, made->buffer),
            "cusparseSpMV_preprocess");
  s = std::move(made);
  return *s;
}

/// Whether it is to be taken. Measures where nobody did for such a block.
template <class T>
bool CusparseProduct::decide(Executor const& executor, kernel::CsrRows<T> const& rows, std::int32_t const* offsets, T const* x) {
  if (choice_ == GpuProduct::cusparse) return true;
  if (auto const before = known(dtype_, rows_, cols_, entries_)) return *before;
  MeasuredProduct m{dtype_, rows_, cols_, entries_, 0, 0, false};
  try {
    Executor plain = executor;  // at once, whatever the conditions say
    plain.collector = nullptr;
    plain.guard_count = 0;
    auto* const stream = executor.stream();
    auto& s = of_stream(stream, rows, offsets, x);
    auto* const y = s.template scratch<T>(stream);
    auto const seconds = [&](auto const& product) {
      constexpr int rounds = 3, products = 8;
      double best = std::numeric_limits<double>::infinity();
      product();
      for (int r = 0; r < rounds; ++r) {
        gpu::wait(stream);
        auto const start = profile::now();
        for (int p = 0; p < products; ++p) product();
        gpu::wait(stream);
        best = std::min(best, (profile::now() - start) / products);
      }
      return best;
    };
    m.own_seconds = seconds([&] { by_ours(plain, rows, x, y); });
    m.cusparse_seconds = seconds([&] { s.multiply(stream, x, y); });
    m.cusparse_taken = m.cusparse_seconds < 0.9 * m.own_seconds;
    log::info("products of {} x {} blocks with {} entries on the GPU: ours {} us, cuSPARSE {} us", rows_, cols_, entries_,
              1e6 * m.own_seconds, 1e6 * m.cusparse_seconds);
  } catch (Error const& e) {  // of cuSPARSE: ours does without
    m.cusparse_seconds = std::numeric_limits<double>::infinity();
    log::warning("products on the GPU are ours: {}", e.what());
  }
  std::lock_guard const lock(measured().mutex);
  measured().all.push_back(m);
  return m.cusparse_taken;
}

template <class T>
void CusparseProduct::run(Executor& executor, std::shared_ptr<CusparseProduct> self, kernel::CsrRows<T> rows, std::int32_t const* offsets,
                          T const* x, T* y) {
  auto& c = *self;
  std::lock_guard const lock(c.mutex_);
  if (!c.taken_) c.taken_ = c.decide(executor, rows, offsets, x);
  if (!*c.taken_) return by_ours(executor, rows, x, y);
  auto* const stream = executor.stream();
  auto& s = c.of_stream(stream, rows, offsets, x);
  if (executor.guard_count == 0) return s.multiply(stream, x, y);
  // cuSPARSE asks for no condition: it writes elsewhere, and a kernel that asks copies
  auto* const result = s.template scratch<T>(stream);
  s.multiply(stream, x, result);
  gpu::form_of (&kernel::convert<T, T>)(executor, c.rows_, result, y);
}

#define INSTANTIATE(T) \
  template void CusparseProduct::run(Executor&, std::shared_ptr<CusparseProduct>, kernel::CsrRows<T>, std::int32_t const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la
