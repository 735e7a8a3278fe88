// Another library that factors, called through its C interface where it is installed.
#pragma once
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/direct/factor_options.hpp"
#include "asterism/direct/serial_factors.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct::foreign {

struct PeerOptions {
  std::string name;  ///< umfpack, cholmod, superlu, mumps
  FactorKind kind = FactorKind::lu;
  std::string ordering = "auto";          ///< auto: the peer's own choice
  std::optional<double> pivot_threshold;  ///< nothing: the peer's own
  std::size_t memory_limit = 0;           ///< bytes that a peer may predict; 0: what the machine has
};

struct PeerFacts {
  std::int64_t entries = 0, bytes = 0;  ///< of the factors
  std::int64_t negative = 0;            ///< eigenvalues, of Hermitian factors
  std::string ordering;                 ///< empty: the one that was given
  Determinant determinant;              ///< of the matrix that it factored
};

/// Predicted bytes; 0: it does not say.
struct Prediction {
  std::size_t bytes = 0;
  bool is_bound = false;  ///< more than will be needed
};

/// Matrices come in compressed columns: row p of `columns` is column p of the matrix, with its row numbers ascending.
class Peer {
 public:
  Peer() = default;
  Peer(Peer const&) = delete;
  Peer& operator=(Peer const&) = delete;
  virtual ~Peer() = default;
  /// order[k]: the row and column that is k-th; empty: the peer's choice.
  virtual Prediction analyse(la::Csr const& columns, std::span<std::int32_t const> order) = 0;
  /// Numbers for the pattern of analyse(). Errors: value (singular), breakdown (not positive definite), memory.
  virtual void factor(la::Csr const& columns) = 0;
  /// b becomes A^-1 b, A^-T b ('T') or A^-H b ('C'); b: n x k, column-major. One thread at a time.
  virtual void solve(char trans, std::int64_t k, void* b) = 0;
  virtual PeerFacts facts() const = 0;
  /// "UMFPACK 5.7.9".
  virtual std::string about() const = 0;
};

std::unique_ptr<Peer> umfpack(PeerOptions const& options, Dtype dtype);
std::unique_ptr<Peer> cholmod(PeerOptions const& options, Dtype dtype);
std::unique_ptr<Peer> superlu(PeerOptions const& options, Dtype dtype);
std::unique_ptr<Peer> mumps(PeerOptions const& options, Dtype dtype);

/// An error of kind unsupported: what to install.
[[noreturn]] void not_installed(std::string const& name, std::string const& why, std::string const& packages, char const* variable);
/// An error of kind value.
[[noreturn]] void singular(std::string const& name, std::string const& why);
[[noreturn]] void out_of_memory(std::string const& name);

/// A product of pivots.
class PivotProduct {
 public:
  void times(std::complex<double> v) {
    double const size = std::abs(v);
    phase_ *= size > 0 ? v / size : 0;
    log_ += std::log(size);
  }
  void times(bool odd) { phase_ = odd ? -phase_ : phase_; }
  Determinant value() const { return {phase_.real(), phase_.imag(), log_}; }

 private:
  std::complex<double> phase_ = 1;
  double log_ = 0;
};

}  // namespace asterism::direct::foreign
