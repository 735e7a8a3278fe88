// MUMPS, version 5.5 without MPI (Amestoy, Duff, L'Excellent and Koster 2001): multifrontal LU.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "asterism/base/error.hpp"
#include "asterism/base/shared_library.hpp"
#include "asterism/direct/foreign/peer.hpp"

namespace asterism::direct::foreign {
namespace {

/// The interface of MUMPS is one structure of parameters. Its fields differ between versions: these are those of 5.5. What is set or read
/// has MUMPS's names.
template <class T>
struct MumpsStructure {
  using R = real_t<T>;
  int sym, par, job, comm_fortran, icntl[60], unused_1[500];
  R cntl[15], unused_2[230];
  std::int64_t unused_3[150];
  int n, unused_4[3];
  std::int64_t nnz;
  int *irn, *jcn;
  T* a;
  int unused_5;
  std::int64_t unused_6;
  void* unused_7[3];
  int unused_8;
  void* unused_9[5];
  int* perm_in;
  void* unused_10[4];
  int unused_11[2];
  T* rhs;
  void* unused_12[8];
  int nrhs, lrhs, unused_13[5], unused_14[7];
  int info[80], infog[80];
  R rinfo[40], rinfog[40];
  int unused_15;
  void* unused_16[2];
  int unused_17;
  void* unused_18[2];
  int unused_19;
  void* unused_20;
  char version_number[32];
  std::byte rest[8192];
};

template <class T, std::size_t cntl, std::size_t a, std::size_t rhs, std::size_t infog, std::size_t version>
constexpr bool mumps_fields_are_at =
    offsetof(MumpsStructure<T>, cntl) == cntl && offsetof(MumpsStructure<T>, a) == a && offsetof(MumpsStructure<T>, rhs) == rhs &&
    offsetof(MumpsStructure<T>, infog) == infog && offsetof(MumpsStructure<T>, version_number) == version;
static_assert(mumps_fields_are_at<float, 2256, 4480, 4624, 5072, 5776> && mumps_fields_are_at<double, 2256, 5456, 5600, 6048, 7072>);

struct MumpsLibrary {
  SharedLibrary file[4];
  void (*call[4])(void*) = {};
  MumpsLibrary() {
    for (std::size_t d = 0; d < 4; ++d) {
      std::string const letter(1, "sdcz"[d]);
      file[d] = SharedLibrary({"lib" + letter + "mumps_seq-5.5.so"}, "ASTERISM_MUMPS");
      if (file[d]) file[d].find(call[d], letter + "mumps_c", false);
    }
  }
};

MumpsLibrary const& mumps_library(std::size_t kind) {
  static auto const* const l = new MumpsLibrary;
  auto const& file = l->file[kind];
  auto const why = file ? format("'{}' has no {}mumps_c", file.path(), "sdcz"[kind]) : file.why_not();
  if (!l->call[kind]) not_installed("mumps", why, "MUMPS 5.5 without MPI (Debian 12: libmumps-seq-5.5)", "ASTERISM_MUMPS");
  return *l;
}

template <class T>
class Mumps final : public Peer {
  static constexpr std::size_t kind = (is_complex_v<T> ? 2 : 0) + (sizeof(real_t<T>) == 8 ? 1 : 0);

 public:
  explicit Mumps(PeerOptions const& options) : call_(mumps_library(kind).call[kind]) {
    m_.par = 1, m_.comm_fortran = use_world;
    job(-1);
    ASTERISM_REQUIRE(std::strncmp(m_.version_number, "5.5", 3) == 0, unsupported,
                     "-pc_factor_mat_solver_type mumps: version 5.5 can be called, and this is another.");
    std::fill_n(m_.icntl, 3, -1);  // no output
    m_.icntl[3] = 0;
    m_.icntl[32] = 1;  // the determinant
    if (options.pivot_threshold) m_.cntl[0] = real_t<T>(*options.pivot_threshold);
  }
  ~Mumps() override { job(-2); }

  Prediction analyse(la::Csr const& columns, std::span<std::int32_t const> order) override {
    own_order_ = order.empty();
    place_.assign(order.size(), 0);
    for (std::size_t k = 0; k < order.size(); ++k) place_[std::size_t(order[k])] = int(k) + 1;
    if (!own_order_) m_.icntl[6] = 1, m_.perm_in = place_.data();
    take(columns);
    job(1);
    check("analysis");
    return {std::size_t(std::max(1, m_.infog[16])) * 1000000, false};
  }

  void factor(la::Csr const& columns) override {
    take(columns);
    for (int tries = 0; tries < 6; ++tries) {
      job(2);
      bool const too_little_work_space = m_.infog[0] == -8 || m_.infog[0] == -9;
      if (!too_little_work_space) break;
      m_.icntl[13] *= 2;  // per cent more than predicted
    }
    check("factorisation");
  }

  void solve(char trans, std::int64_t k, void* b) override {
    auto* const v = static_cast<T*>(b);
    auto const conjugate = [&] {
      for (std::int64_t e = 0; e < m_.n * k && trans == 'C'; ++e) v[e] = conj(v[e]);
    };
    conjugate();
    m_.icntl[8] = trans == 'N' ? 1 : 0;
    m_.rhs = v, m_.nrhs = int(k), m_.lrhs = m_.n;
    job(3);
    check("solve");
    conjugate();
  }

  PeerFacts facts() const override {
    PeerFacts out;
    int const entries = m_.infog[28];
    out.entries = entries < 0 ? -std::int64_t(entries) * 1000000 : entries;  // below zero: millions
    out.bytes = out.entries * std::int64_t(sizeof(T));
    constexpr char const* names[] = {"amd", "", "amf", "scotch", "pord", "nd", "qamd"};
    if (own_order_ && m_.infog[6] >= 0 && m_.infog[6] <= 6) out.ordering = names[m_.infog[6]];
    PivotProduct p;
    p.times(std::complex<double>(double(m_.rinfog[11]), is_complex_v<T> ? double(m_.rinfog[12]) : 0));
    out.determinant = p.value();
    out.determinant.log += m_.infog[33] * std::log(2.0);
    return out;
  }
  std::string about() const override { return format("MUMPS {}", std::string(m_.version_number)); }

 private:
  static constexpr int use_world = -987654;
  void job(int what) {
    static auto* const alone = new std::mutex;  // it has variables that all instances share
    std::lock_guard const lock(*alone);
    m_.job = what;
    call_(&m_);
  }
  void take(la::Csr const& columns) {
    rows_.clear(), columns_.clear();
    for (std::int32_t j = 0; j < columns.rows; ++j)
      for (auto p = columns.row_offsets()[std::size_t(j)]; p < columns.row_offsets()[std::size_t(j) + 1]; ++p)
        rows_.push_back(columns.column_indices()[std::size_t(p)] + 1), columns_.push_back(j + 1);
    values_.assign(columns.entries<T>().begin(), columns.entries<T>().end());
    m_.n = columns.rows, m_.nnz = std::int64_t(rows_.size());
    m_.irn = rows_.data(), m_.jcn = columns_.data(), m_.a = values_.data();
  }
  void check(char const* step) const {
    int const status = m_.infog[0];
    if (status == -6) singular("mumps", format("its structural rank is {}", m_.infog[1]));
    if (status == -10) singular("mumps", format("{} pivots were found, and then none that is not zero", m_.infog[1]));
    if (status == -5 || status == -7 || status == -13 || status == -9 || status == -8) out_of_memory("mumps");
    ASTERISM_REQUIRE(status >= 0, breakdown, "mumps: the {} failed with status {}, {}.", step, status, m_.infog[1]);
  }

  void (*call_)(void*);
  MumpsStructure<T> m_{};
  std::vector<int> rows_, columns_, place_;
  std::vector<T> values_;
  bool own_order_ = true;
};

}  // namespace

std::unique_ptr<Peer> mumps(PeerOptions const& options, Dtype dtype) {
  return with_dtype(dtype,
                    [&](auto tag) -> std::unique_ptr<Peer> { return std::make_unique<Mumps<typename decltype(tag)::type>>(options); });
}

}  // namespace asterism::direct::foreign
