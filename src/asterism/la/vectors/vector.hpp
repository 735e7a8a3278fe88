// Distributed vectors: (n) or (n, k), row-major, with a run-time dtype; and the operations that
// every method is written with. Sums over ranks give Scalars; nothing here waits for the host.
#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/comm/reduction.hpp"
#include "asterism/device/scalar.hpp"
#include "asterism/la/vectors/space.hpp"

namespace asterism::la {

using comm::Layout;
using device::Array;
using device::Queue;
using device::Scalar;

class Vector {
 public:
  Vector() = default;
  /// Uninitialised. k columns, row-major. If the space has a local form, there is room for its ghosts behind the own entries.
  Vector(Space space, Dtype dtype, std::int64_t k = 1, Queue queue = Queue::host());
  /// Over foreign memory of local_size * k values, without room for ghosts.
  static Vector wrap(Space space, Dtype dtype, std::int64_t k, Array data, Queue queue = Queue::host());
  /// Same space, dtype, columns and queue.
  Vector like() const { return Vector(space_, dtype_, k_, queue_); }

  Space const& space() const { return space_; }
  Layout const& layout() const { return space_; }
  comm::Communicator const& comm() const { return space_.comm(); }
  Dtype dtype() const { return dtype_; }
  std::int64_t local_size() const { return rows_; }
  std::int64_t global_size() const { return space_.global_size(); }
  std::int64_t columns() const { return k_; }
  Queue const& queue() const { return queue_; }
  /// The own entries.
  Array const& data() const { return data_; }
  /// Whether the ghosts of its space have room behind the own entries.
  bool has_ghosts() const { return bool(local_); }
  /// Own entries and ghosts, in one piece of memory; the own entries alone without ghosts.
  Array const& local() const { return local_ ? local_ : data_; }
  /// The ghosts alone, which tasks may fill while others read data(). An error without room for them.
  Array ghosts() const;
  /// Waits for work under way, then the host values. Writing through it is the caller's business.
  template <class T>
  std::span<T> host() const {
    data_.settle(device::Access::update, "host access");
    return {data_.as<T>(), std::size_t(local_size() * k_)};
  }
  explicit operator bool() const { return bool(data_) || space_.global_size() > 0; }

 private:
  Space space_;
  Dtype dtype_ = Dtype::float64;
  std::int64_t rows_ = 0, k_ = 1;  // of this rank
  Queue queue_;
  Array data_, local_;
};

/// Where an operator on this space puts the ghosts of x: behind x where there is room for them, else in an array of the queue. x may have
/// room for the ghosts of another space with the same layout.
Array room_for_ghosts(Vector const& x, Space const& space, Queue const& queue);

/// Zeros where entries stand for nothing.
void clear_padding(Vector& x);
void fill(Vector& y, Scalar const& a);
/// y = x, converting between precisions of one field if the dtypes differ.
void copy(Vector const& x, Vector& y);
/// y = x in the columns whose mask is not zero.
void copy_where(Scalar const& mask, Vector const& x, Vector& y);
/// Column j of x, as a vector of its own on the same queue.
Vector column_of(Vector const& x, std::int64_t j);
/// Column j of y becomes x.
void set_column(Vector const& x, std::int64_t j, Vector& y);
void scale(Scalar const& a, Vector& y);
/// Column j times 2^exponents[j], also where that is no number of the dtype.
void scale_by_powers(Vector& y, std::span<int const> exponents);
/// y = a x + y
void axpy(Scalar const& a, Vector const& x, Vector& y);
/// y = x + b y
void aypx(Scalar const& b, Vector const& x, Vector& y);
/// y = a x + b y
void axpby(Scalar const& a, Vector const& x, Scalar const& b, Vector& y);
/// y = conj(x); a copy where they are real
void conjugate(Vector const& x, Vector& y);
/// y = d .* x, d of (n) applied to each column
void multiply(Vector const& d, Vector const& x, Vector& y);
/// y = y + a d .* x
void multiply_add(Scalar const& a, Vector const& d, Vector const& x, Vector& y);

/// d = a d + b w .* r; x += d: one step of a Chebyshev smoother. With a = 0 the old d is not read.
void chebyshev_step(double a, double b, Vector const& w, Vector const& r, Vector& d, Vector& x);

/// x^H y, k wide.
Scalar dot(Vector const& x, Vector const& y);
/// Several in one message.
std::vector<Scalar> dots(std::span<std::pair<Vector const*, Vector const*> const> pairs);
/// The same in two phases: what is submitted in between overlaps the message.
class DotsInFlight {
 public:
  std::vector<Scalar> end();

 private:
  friend DotsInFlight begin_dots(std::span<std::pair<Vector const*, Vector const*> const> pairs);
  std::optional<comm::Reduction> sums_;
  std::optional<comm::ReproducibleReduction> ordered_;  // -reproducible
  std::int64_t pairs_ = 0, columns_ = 0;
};
DotsInFlight dots_begin(std::span<std::pair<Vector const*, Vector const*> const> pairs);
/// ||x||_2, k wide. Entries may be as large or small as the dtype has them (but with -reproducible).
Scalar norm(Vector const& x);
/// x += alpha p; r -= alpha q; returns r^H r. One pass instead of three.
Scalar update_and_norm2(Scalar const& alpha, Vector const& p, Vector const& q, Vector& x, Vector& r);
/// z = d .* r; returns r^H z. One pass.
Scalar multiply_and_dot(Vector const& d, Vector const& r, Vector& z);
// Of vectors in two precisions, so that what is in one need not be stored in the other as well. They give what copies would.
/// update_and_norm2(), and s = r.
Scalar mixed_update_and_norm2(Scalar const& alpha, Vector const& p, Vector const& q, Vector& x, Vector& r, Vector& s);
/// y = x + b y
void mixed_aypx(Scalar const& b, Vector const& x, Vector& y);

/// m vectors of one layout and dtype, each contiguous: the basis of GMRES.
class Basis {
 public:
  Basis(Vector const& like, std::int64_t m);
  Vector operator[](std::int64_t j) const;
  /// h_j = v_j^H w for j < m: one pass over the basis, one message.
  std::vector<Scalar> dots(std::int64_t m, Vector const& w) const;
  /// w += sum_j a_j v_j for j < m
  void add(std::int64_t m, std::span<Scalar const> a, Vector& w) const;

 private:
  Vector like_;
  std::int64_t stride_;
  Array data_;
};

/// Values in (-1, 1) that depend on the global index and the seed alone, not on the ranks.
void fill_hashed(Vector& x, std::uint64_t seed);
/// What a look at the entries finds.
struct Entries {
  std::vector<double> largest;         ///< of each column the largest |re| or |im| that is finite
  std::int64_t not_finite = 0;         ///< entries that are NaN or infinite
  std::int64_t first_not_finite = -1;  ///< global row of the first
  bool all_zero() const;
};
/// Of this rank's.
Entries look_at_local_entries(Vector const& x);
/// Of several vectors, all ranks'. One message; another two if something is not finite. Collective.
std::vector<Entries> look_at_entries(std::span<Vector const* const> vectors);
Entries look_at_entries(Vector const& x);
/// Of an array of this process: the place of the first value that is NaN or infinite, or -1.
std::int64_t first_not_finite(Dtype dtype, std::int64_t count, void const* values);

/// Checks that x belongs with a layout: for O(1) checks at entries.
void require_layout(Vector const& x, Layout const& layout, Dtype dtype, char const* what);

}  // namespace asterism::la
