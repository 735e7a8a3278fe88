// CHOLMOD, versions 3 to 5 (Chen, Davis, Hager and Rajamanickam 2008, ACM TOMS 35, algorithm 887): L L^H by supernodes, or by columns
// where these are small.
#include <algorithm>
#include <array>
#include <cstddef>

#include "asterism/base/error.hpp"
#include "asterism/base/shared_library.hpp"
#include "asterism/direct/foreign/peer.hpp"

namespace asterism::direct::foreign {
namespace {

/// The head of cholmod_common, which holds parameters, work space and statistics: what is set or read of it, with room for the rest.
struct CholmodCommon {
  double unused_1[3];
  std::size_t unused_2[2];
  double unused_3;
  int supernodal, final_asis, final_super, final_ll, unused_4[3];
  double unused_5[3];
  std::size_t unused_6[3];
  int unused_7[2], quick_return_if_not_posdef, unused_8, print, unused_9[2];
  void* unused_10;
  int nmethods, unused_11, selected;
  struct Method {
    double unused_1[9];
    std::size_t unused_2[5];
    int unused_3[5], ordering;
    std::size_t unused_4[4];
  } method[10];
  int postorder, unused_12;
  double unused_13[2];
  std::size_t unused_14[2];
  std::int64_t unused_15;
  std::size_t unused_16[2];
  void* unused_17[4];
  int itype, unused_18[2], status;
  double fl, lnz;
  std::byte rest[8192];
};
static_assert(offsetof(CholmodCommon, supernodal) == 48 && offsetof(CholmodCommon, print) == 144 &&
              offsetof(CholmodCommon, nmethods) == 168 && offsetof(CholmodCommon, method) == 184 && sizeof(CholmodCommon::Method) == 168 &&
              offsetof(CholmodCommon::Method, ordering) == 132 && offsetof(CholmodCommon, postorder) == 1864 &&
              offsetof(CholmodCommon, itype) == 1960 && offsetof(CholmodCommon, lnz) == 1984);

constexpr int cholmod_integers = 2, cholmod_given = 1, cholmod_out_of_memory = -2;

struct CholmodSparse {
  std::size_t nrow, ncol, nzmax;
  void const *p, *i;
  void* nz;
  void const* x;
  void* z;
  int stype, itype, xtype, dtype, sorted, packed;
};
struct CholmodDense {
  std::size_t nrow, ncol, nzmax, d;
  void *x, *z;
  int xtype, dtype;
};
struct CholmodFactor {
  std::size_t n, minor;
  std::int64_t *Perm, *ColCount, *IPerm;
  std::size_t nzmax;
  std::int64_t *p, *i;
  void *x, *z;
  std::int64_t *nz, *next, *prev;
  std::size_t nsuper, ssize, xsize, maxcsize, maxesize;
  std::int64_t *super, *pi, *px, *s;
  int ordering, is_ll, is_super;
};

struct CholmodLibrary {
  SharedLibrary file{{"libcholmod.so.3", "libcholmod.so.5", "libcholmod.so.4", "libcholmod.so"}, "ASTERISM_CHOLMOD"};
  int (*version)(int*) = nullptr;
  int (*start)(CholmodCommon*) = nullptr;
  int (*finish)(CholmodCommon*) = nullptr;
  CholmodFactor* (*analyze_p)(CholmodSparse*, std::int64_t* order, std::int64_t*, std::size_t, CholmodCommon*) = nullptr;
  int (*factorize)(CholmodSparse*, CholmodFactor*, CholmodCommon*) = nullptr;
  CholmodDense* (*solve)(int system, CholmodFactor*, CholmodDense*, CholmodCommon*) = nullptr;
  int (*free_factor)(CholmodFactor**, CholmodCommon*) = nullptr;
  int (*free_dense)(CholmodDense**, CholmodCommon*) = nullptr;
  std::array<int, 3> number{};
  CholmodLibrary() {
    if (!file) return;
    file.find(version, "cholmod_l_version"), file.find(start, "cholmod_l_start"), file.find(finish, "cholmod_l_finish");
    file.find(analyze_p, "cholmod_l_analyze_p"), file.find(factorize, "cholmod_l_factorize"), file.find(solve, "cholmod_l_solve");
    file.find(free_factor, "cholmod_l_free_factor"), file.find(free_dense, "cholmod_l_free_dense");
    version(number.data());
  }
};

CholmodLibrary const& cholmod_library() {
  static auto const* const l = new CholmodLibrary;
  if (!l->file)
    not_installed("cholmod", l->file.why_not(), "SuiteSparse (Debian: libsuitesparse-dev; conda: suitesparse)", "ASTERISM_CHOLMOD");
  return *l;
}

class Cholmod final : public Peer {
 public:
  explicit Cholmod(Dtype dtype) : l_(cholmod_library()), complex_(is_complex(dtype)) {
    l_.start(&c_);
    bool const as_known = c_.supernodal == 1 && c_.final_asis == 1 && c_.final_super == 1 && c_.print == 3 && c_.nmethods == 0 &&
                          c_.postorder == 1 && c_.itype == cholmod_integers && c_.status == 0;
    bool const new_enough = l_.number[0] >= 3 && l_.number[0] <= 5;
    if (!as_known || !new_enough) {
      l_.finish(&c_);
      fail(
          ErrorKind::unsupported,
          "-pc_factor_mat_solver_type cholmod: {} is version {}.{}.{}; versions 3 to 5 can be called. ASTERISM_CHOLMOD names another file.",
          l_.file.path(), l_.number[0], l_.number[1], l_.number[2]);
    }
    c_.print = 0;
    c_.quick_return_if_not_posdef = 1;
    // not L D L^H, which would go on with negative pivots
    c_.final_asis = 0, c_.final_ll = 1;
  }
  ~Cholmod() override {
    l_.free_factor(&factor_, &c_);
    l_.finish(&c_);
  }

  Prediction analyse(la::Csr const& columns, std::span<std::int32_t const> order) override {
    std::vector<std::int64_t> given(order.begin(), order.end());
    if (!given.empty()) c_.nmethods = 1, c_.method[0].ordering = cholmod_given;
    auto a = matrix(columns);
    factor_ = l_.analyze_p(&a, given.empty() ? nullptr : given.data(), nullptr, 0, &c_);
    if (!factor_) failed("analysis");
    std::size_t const number = complex_ ? 16 : 8;
    auto const bytes =
        factor_->is_super ? factor_->xsize * number + factor_->ssize * 8 + factor_->maxcsize * number : std::size_t(c_.lnz) * (number + 8);
    entries_ = std::int64_t(factor_->is_super ? double(factor_->xsize) : c_.lnz);
    return {bytes};
  }

  void factor(la::Csr const& columns) override {
    auto a = matrix(columns);
    if (!l_.factorize(&a, factor_, &c_)) failed("factorisation");
    if (factor_->minor < factor_->n)
      fail(ErrorKind::breakdown,
           "cholmod: the matrix is not positive definite: the pivot of row {} is not positive. -pc_factor_mat_solver_type asterism makes "
           "L D L^H of such a matrix.",
           factor_->Perm[factor_->minor]);
  }

  void solve(char trans, std::int64_t k, void* b) override {
    auto const n = factor_->n, numbers = n * std::size_t(k);
    auto* const v = static_cast<double*>(b);
    auto const conjugate = [&] {
      for (std::size_t e = 0; e < numbers && complex_ && trans == 'T'; ++e) v[2 * e + 1] = -v[2 * e + 1];
    };
    conjugate();
    CholmodDense B{n, std::size_t(k), numbers, n, b, nullptr, complex_ ? 2 : 1, 0};
    auto* x = l_.solve(0, factor_, &B, &c_);
    if (!x) failed("solve");
    std::copy_n(static_cast<double const*>(x->x), numbers * (complex_ ? 2 : 1), v);
    l_.free_dense(&x, &c_);
    conjugate();
  }

  PeerFacts facts() const override {
    auto const& f = *factor_;
    PeerFacts out;
    out.entries = entries_;
    out.bytes = std::int64_t(f.is_super ? f.xsize * (complex_ ? 16 : 8) + f.ssize * 8 : f.nzmax * (complex_ ? 24 : 16));
    out.ordering = f.ordering == 0 ? "natural" : f.ordering == 2 ? "amd" : f.ordering == 3 ? "nd" : f.ordering == 4 ? "nesdis" : "";
    PivotProduct p;
    auto const pivot = [&](std::int64_t place) {
      double const v = static_cast<double const*>(f.x)[place * (complex_ ? 2 : 1)];
      p.times(std::complex<double>(v * v));
    };
    if (!f.is_super)
      for (std::size_t j = 0; j < f.n; ++j) pivot(f.p[j]);
    for (std::size_t s = 0; f.is_super && s < f.nsuper; ++s)
      for (std::int64_t j = 0; j < f.super[s + 1] - f.super[s]; ++j) pivot(f.px[s] + j * (f.pi[s + 1] - f.pi[s]) + j);
    out.determinant = p.value();
    return out;
  }
  std::string about() const override { return format("CHOLMOD {}.{}.{}", l_.number[0], l_.number[1], l_.number[2]); }

 private:
  /// Its lower triangle is read.
  CholmodSparse matrix(la::Csr const& columns) {
    auto const ptr = columns.row_offsets();
    auto const index = columns.column_indices();
    offsets_.assign(ptr.begin(), ptr.end());
    rows_.assign(index.begin(), index.end());
    auto const n = std::size_t(columns.rows);
    return {n,
            n,
            index.size(),
            offsets_.data(),
            rows_.data(),
            nullptr,
            columns.values.as<double>(),
            nullptr,
            -1,
            cholmod_integers,
            complex_ ? 2 : 1,
            0,
            1,
            1};
  }
  [[noreturn]] void failed(char const* step) const {
    if (c_.status == cholmod_out_of_memory) out_of_memory("cholmod");
    fail(ErrorKind::breakdown, "cholmod: the {} failed with status {}.", step, c_.status);
  }

  CholmodLibrary const& l_;
  bool complex_;
  CholmodCommon c_{};
  CholmodFactor* factor_ = nullptr;
  std::int64_t entries_ = 0;
  std::vector<std::int64_t> offsets_, rows_;
};

}  // namespace

std::unique_ptr<Peer> cholmod(PeerOptions const&, Dtype dtype) { return std::make_unique<Cholmod>(dtype); }

}  // namespace asterism::direct::foreign
