// UMFPACK, versions 5 and 6 (Davis 2004, ACM TOMS 30, algorithm 832): LU with its own scaling, ordering and pivoting.
#include <algorithm>
#include <array>

#include "asterism/base/error.hpp"
#include "asterism/base/shared_library.hpp"
#include "asterism/direct/foreign/peer.hpp"

namespace asterism::direct::foreign {
namespace {

/// The functions of one kind of numbers. Those of complex numbers take a second pointer for each array of numbers; a null pointer there
/// says that real and imaginary parts alternate.
struct UmfpackFunctions {
  void (*defaults)(double* control) = nullptr;
  void (*free_symbolic)(void**) = nullptr;
  void (*free_numeric)(void**) = nullptr;
  void* symbolic = nullptr;
  void* qsymbolic = nullptr;
  void* numeric = nullptr;
  void* solve = nullptr;
  void* get_determinant = nullptr;
};

struct UmfpackLibrary {
  SharedLibrary file{{"libumfpack.so.5", "libumfpack.so.6", "libumfpack.so"}, "ASTERISM_UMFPACK"};
  UmfpackFunctions real, complex;
  UmfpackLibrary() {
    if (!file) return;
    for (auto const& [f, letter] : {std::pair(&real, "d"), std::pair(&complex, "z")}) {
      auto const named = [letter = letter](char const* rest) { return std::string("umfpack_") + letter + "l_" + rest; };
      auto const any = [&](void*& to, char const* rest) {
        void (*found)() = nullptr;
        file.find(found, named(rest));
        to = reinterpret_cast<void*>(found);
      };
      file.find(f->defaults, named("defaults"));
      file.find(f->free_symbolic, named("free_symbolic"));
      file.find(f->free_numeric, named("free_numeric"));
      any(f->symbolic, "symbolic"), any(f->qsymbolic, "qsymbolic"), any(f->numeric, "numeric");
      any(f->solve, "solve"), any(f->get_determinant, "get_determinant");
    }
  }
};

UmfpackLibrary const& umfpack_library() {
  static auto const* const l = new UmfpackLibrary;
  if (!l->file)
    not_installed("umfpack", l->file.why_not(), "SuiteSparse (Debian: libsuitesparse-dev; conda: suitesparse)", "ASTERISM_UMFPACK");
  return *l;
}

class Umfpack final : public Peer {
  using Long = std::int64_t;

 public:
  Umfpack(PeerOptions const& options, Dtype dtype)
      : f_(is_complex(dtype) ? umfpack_library().complex : umfpack_library().real), complex_(is_complex(dtype)) {
    f_.defaults(control_.data());
    control_[refinement_steps] = 0;  // which is done outside, for all columns
    if (options.pivot_threshold) control_[pivot_tolerance] = *options.pivot_threshold;
  }
  ~Umfpack() override {
    f_.free_numeric(&numeric_);
    f_.free_symbolic(&symbolic_);
  }

  Prediction analyse(la::Csr const& columns, std::span<std::int32_t const> order) override {
    n_ = columns.rows;
    take(columns);
    std::vector<Long> const given(order.begin(), order.end());
    Long const* const q = given.data();
    auto const symbolic = [&](auto... numbers) {
      return order.empty() ? call(f_.symbolic, n_, n_, offsets(), rows(), numbers..., &symbolic_, control(), info_.data())
                           : call(f_.qsymbolic, n_, n_, offsets(), rows(), numbers..., q, &symbolic_, control(), info_.data());
    };
    auto const* const v = values(columns);
    check(complex_ ? symbolic(v, none) : symbolic(v), "analysis");
    return {std::size_t(info_[peak_memory_estimate] * info_[size_of_unit]), true};
  }

  void factor(la::Csr const& columns) override {
    f_.free_numeric(&numeric_);
    take(columns);
    auto const numeric = [&](auto... numbers) {
      return call(f_.numeric, offsets(), rows(), numbers..., symbolic_, &numeric_, control(), info_.data());
    };
    auto const* const v = values(columns);
    auto const status = complex_ ? numeric(v, none) : numeric(v);
    if (status == 1) f_.free_numeric(&numeric_), singular("umfpack", "a pivot is exactly zero");
    check(status, "factorisation");
    made_ = info_;
  }

  void solve(char trans, std::int64_t k, void* b) override {
    Long const system = trans == 'N' ? 0 : trans == 'C' ? 1 : 2;
    std::vector<double> x(std::size_t(n_) * (complex_ ? 2 : 1));
    Long const* const no_index = nullptr;
    for (std::int64_t j = 0; j < k; ++j) {
      auto* const column = static_cast<double*>(b) + j * std::int64_t(x.size());
      double const* const from = column;
      double* const no_parts = nullptr;
      check(complex_
                ? call(f_.solve, system, no_index, no_index, none, none, x.data(), no_parts, from, none, numeric_, control(), info_.data())
                : call(f_.solve, system, no_index, no_index, none, x.data(), from, numeric_, control(), info_.data()),
            "solve");
      std::copy(x.begin(), x.end(), column);
    }
  }

  PeerFacts facts() const override {
    PeerFacts out;
    out.entries = std::int64_t(made_[entries_of_l] + made_[entries_of_u]);
    out.bytes = std::int64_t(made_[numeric_size] * made_[size_of_unit]);
    int const by = int(made_[ordering_used]);
    out.ordering = by == 1 ? "amd" : by == 3 ? "nd" : by == 5 ? "natural" : "";
    double mantissa[2] = {0, 0}, exponent = 0;
    double* const no_parts = nullptr;
    double scratch[90];
    auto const status = complex_ ? call(f_.get_determinant, &mantissa[0], no_parts, &exponent, numeric_, &scratch[0])
                                 : call(f_.get_determinant, &mantissa[0], &exponent, numeric_, &scratch[0]);
    ASTERISM_REQUIRE(status >= 0, internal, "umfpack: the determinant failed with status {}.", status);
    PivotProduct p;
    p.times(std::complex<double>(mantissa[0], complex_ ? mantissa[1] : 0));
    out.determinant = p.value();
    out.determinant.log += exponent * std::log(10.0);
    return out;
  }
  std::string about() const override { return format("UMFPACK ({})", umfpack_library().file.path()); }

 private:
  // places in Control and Info
  static constexpr std::size_t pivot_tolerance = 3, refinement_steps = 7;
  static constexpr std::size_t size_of_unit = 3, ordering_used = 19, peak_memory_estimate = 21, numeric_size = 40, entries_of_l = 43,
                               entries_of_u = 44;
  static constexpr double const* none = nullptr;
  template <class... A>
  static Long call(void* function, A... arguments) {
    return reinterpret_cast<Long (*)(A...)>(function)(arguments...);
  }
  void take(la::Csr const& columns) {
    auto const ptr = columns.row_offsets();
    auto const index = columns.column_indices();
    offsets_.assign(ptr.begin(), ptr.end());
    rows_.assign(index.begin(), index.end());
  }
  Long const* offsets() const { return offsets_.data(); }
  Long const* rows() const { return rows_.data(); }
  double const* control() const { return control_.data(); }
  static double const* values(la::Csr const& columns) { return columns.values.as<double>(); }
  static void check(Long status, char const* step) {
    if (status == -1) out_of_memory("umfpack");
    ASTERISM_REQUIRE(status >= 0, breakdown, "umfpack: the {} failed with status {}.", step, status);
  }

  UmfpackFunctions f_;
  bool complex_;
  Long n_ = 0;
  std::array<double, 20> control_{};
  std::array<double, 90> info_{}, made_{};
  std::vector<Long> offsets_, rows_;
  void *symbolic_ = nullptr, *numeric_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> umfpack(PeerOptions const& options, Dtype dtype) { return std::make_unique<Umfpack>(options, dtype); }

}  // namespace asterism::direct::foreign
