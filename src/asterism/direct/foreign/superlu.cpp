// SuperLU, version 5 (Demmel, Eisenstat, Gilbert, Li and Liu 1999): LU with partial pivoting, column by column of supernodes.
#include <algorithm>
#include <limits>

#include "asterism/base/error.hpp"
#include "asterism/base/shared_library.hpp"
#include "asterism/direct/foreign/peer.hpp"
#include "asterism/direct/permutations.hpp"

namespace asterism::direct::foreign {
namespace {

struct SuperluMatrix {
  int storage = 0, numbers = 0, kind = 0, rows = 0, columns = 0;
  void* store = nullptr;
};
struct SuperluColumns {
  int entries = 0;
  void* values = nullptr;
  int *rows = nullptr, *offsets = nullptr;
};
struct SuperluDense {
  int leading = 0;
  void* values = nullptr;
};
/// Of L. Its blocks hold the diagonal blocks of U too.
struct SuperluSupernodes {
  int entries, last;
  void* values;
  int *value_offsets, *rows, *row_offsets, *node_of_column, *first_column;
};
/// What is set of superlu_options_t, with room for the rest; the two others are written and read by SuperLU alone.
struct SuperluOptions {
  int unused_1[5];
  double pivot_threshold;
  std::byte rest[1024];
};
struct SuperluStatistics {
  std::byte all[1024];
};
struct SuperluWork {
  std::byte all[4096];
};

struct SuperluFunctions {
  void (*gstrf)(SuperluOptions*, SuperluMatrix*, int relax, int panel, int* tree, void*, int, int* perm_c, int* perm_r, SuperluMatrix* L,
                SuperluMatrix* U, SuperluWork*, SuperluStatistics*, int* info) = nullptr;
  void (*gstrs)(int trans, SuperluMatrix* L, SuperluMatrix* U, int* perm_c, int* perm_r, SuperluMatrix* B, SuperluStatistics*,
                int* info) = nullptr;
  int (*query_space)(SuperluMatrix* L, SuperluMatrix* U, float* bytes) = nullptr;
};

struct SuperluLibrary {
  SharedLibrary file{{"libsuperlu.so.5"}, "ASTERISM_SUPERLU"};
  SuperluFunctions of_dtype[4];
  void (*set_default_options)(SuperluOptions*) = nullptr;
  void (*get_perm_c)(int which, SuperluMatrix*, int* perm_c) = nullptr;
  void (*preorder)(SuperluOptions*, SuperluMatrix* A, int* perm_c, int* tree, SuperluMatrix* permuted) = nullptr;
  void (*start)(SuperluStatistics*) = nullptr;
  void (*finish)(SuperluStatistics*) = nullptr;
  void (*destroy_supernodes)(SuperluMatrix*) = nullptr;
  void (*destroy_columns)(SuperluMatrix*) = nullptr;
  void (*destroy_permuted)(SuperluMatrix*) = nullptr;
  int (*parameter)(int) = nullptr;
  SuperluLibrary() {
    if (!file) return;
    for (std::size_t d = 0; d < 4; ++d) {
      std::string const letter(1, "sdcz"[d]);
      file.find(of_dtype[d].gstrf, letter + "gstrf"), file.find(of_dtype[d].gstrs, letter + "gstrs");
      file.find(of_dtype[d].query_space, letter + "QuerySpace");
    }
    file.find(set_default_options, "set_default_options"), file.find(get_perm_c, "get_perm_c"), file.find(preorder, "sp_preorder");
    file.find(start, "StatInit"), file.find(finish, "StatFree"), file.find(parameter, "sp_ienv");
    file.find(destroy_supernodes, "Destroy_SuperNode_Matrix"), file.find(destroy_columns, "Destroy_CompCol_Matrix");
    file.find(destroy_permuted, "Destroy_CompCol_Permuted");
  }
};

SuperluLibrary const& superlu_library() {
  static auto const* const l = new SuperluLibrary;
  if (!l->file) not_installed("superlu", l->file.why_not(), "SuperLU 5 (Debian 12: libsuperlu-dev)", "ASTERISM_SUPERLU");
  return *l;
}

class Superlu final : public Peer {
 public:
  Superlu(PeerOptions const& options, Dtype dtype)
      : l_(superlu_library()), kind_((is_complex(dtype) ? 2 : 0) + (real_of(dtype) == Dtype::float64 ? 1 : 0)), dtype_(dtype) {
    l_.set_default_options(&options_);
    if (options.pivot_threshold) options_.pivot_threshold = *options.pivot_threshold;
    l_.start(&statistics_);
  }
  ~Superlu() override {
    destroy();
    l_.finish(&statistics_);
  }

  Prediction analyse(la::Csr const& columns, std::span<std::int32_t const> order) override {
    int const fill = l_.parameter(6);
    ASTERISM_REQUIRE(columns.nnz() <= std::numeric_limits<int>::max() / std::max(1, fill), unsupported,
                     "superlu counts entries of the factors in 32 bits, and the matrix has {}: too many. Use -pc_factor_mat_solver_type "
                     "asterism.",
                     columns.nnz());
    own_order_ = order.empty();
    perm_c_.assign(std::size_t(columns.rows), 0);
    perm_r_ = tree_ = perm_c_;
    if (own_order_) {
      View const a(columns, kind_);
      constexpr int colamd = 3;
      l_.get_perm_c(colamd, &a.matrix, perm_c_.data());
    }
    for (std::size_t k = 0; k < order.size(); ++k) perm_c_[std::size_t(order[k])] = int(k);
    return {};
  }

  void factor(la::Csr const& columns) override {
    destroy();
    View const a(columns, kind_);
    SuperluMatrix permuted;
    int info = 0;
    l_.preorder(&options_, &a.matrix, perm_c_.data(), tree_.data(), &permuted);
    functions().gstrf(&options_, &permuted, l_.parameter(2), l_.parameter(1), tree_.data(), nullptr, 0, perm_c_.data(), perm_r_.data(), &L_,
                      &U_, &work_, &statistics_, &info);
    l_.destroy_permuted(&permuted);
    there_ = info >= 0 && info <= columns.rows;
    if (info > columns.rows) out_of_memory("superlu");
    if (info > 0)
      singular("superlu",
               format("the pivot of column {} is exactly zero", std::find(perm_c_.begin(), perm_c_.end(), info - 1) - perm_c_.begin()));
    ASTERISM_REQUIRE(info == 0, breakdown, "superlu: the factorisation failed with status {}.", info);
  }

  void solve(char trans, std::int64_t k, void* b) override {
    SuperluDense dense{L_.rows, b};
    SuperluMatrix B{6, int(kind_), 0, L_.rows, int(k), &dense};
    int info = 0;
    functions().gstrs(trans == 'N' ? 0 : trans == 'T' ? 1 : 2, &L_, &U_, perm_c_.data(), perm_r_.data(), &B, &statistics_, &info);
    ASTERISM_REQUIRE(info == 0, breakdown, "superlu: the solve failed with status {}.", info);
  }

  PeerFacts facts() const override {
    auto const& l = *static_cast<SuperluSupernodes const*>(L_.store);
    PeerFacts out;
    out.entries = l.entries + std::int64_t(static_cast<SuperluColumns const*>(U_.store)->entries);
    float bytes[4] = {};
    functions().query_space(&L_, &U_, bytes);
    out.bytes = std::int64_t(bytes[0]);
    out.ordering = own_order_ ? "colamd" : "";
    PivotProduct p;
    p.times(is_odd(perm_r_) != is_odd(perm_c_));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int j = 0; j < L_.rows; ++j) {
        int const first = l.first_column[l.node_of_column[j]];
        p.times(to_complex(static_cast<T const*>(l.values)[l.value_offsets[j] + j - first]));
      }
    });
    out.determinant = p.value();
    return out;
  }
  std::string about() const override { return format("SuperLU ({})", l_.file.path()); }

 private:
  /// SuperLU's view of a matrix in compressed columns.
  struct View {
    std::vector<int> offsets;
    SuperluColumns store;
    mutable SuperluMatrix matrix;
    View(la::Csr const& a, std::size_t kind) : offsets(a.row_offsets().begin(), a.row_offsets().end()) {
      store = {int(a.nnz()), a.values.raw(), a.columns.as<std::int32_t>(), offsets.data()};
      matrix = {0, int(kind), 0, a.rows, a.rows, &store};
    }
    View(View const&) = delete;
    View& operator=(View const&) = delete;
  };

  SuperluFunctions const& functions() const { return l_.of_dtype[kind_]; }
  void destroy() {
    if (there_) l_.destroy_supernodes(&L_), l_.destroy_columns(&U_);
    there_ = false;
  }

  SuperluLibrary const& l_;
  std::size_t kind_;  // in SuperLU's order of dtypes
  Dtype dtype_;
  SuperluOptions options_{};
  SuperluStatistics statistics_{};
  SuperluWork work_{};
  mutable SuperluMatrix L_, U_;
  std::vector<int> perm_c_, perm_r_, tree_;
  bool own_order_ = true, there_ = false;
};

}  // namespace

std::unique_ptr<Peer> superlu(PeerOptions const& options, Dtype dtype) { return std::make_unique<Superlu>(options, dtype); }

}  // namespace asterism::direct::foreign
