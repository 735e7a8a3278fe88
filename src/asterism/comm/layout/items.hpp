// What star forests move and how values meet: item types and operations, chosen at run time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "asterism/base/complex.hpp"

namespace asterism::comm {

enum class ItemType : std::uint8_t {
  bytes,  ///< of any size: moved, never computed with
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex64,
  complex128,
  // (value, index), for minloc and maxloc
  pair_int32,
  pair_int64,
  pair_float32,        ///< index int32
  pair_float64,        ///< index int64
  pair_float64_int32,  ///< 16 bytes, as MPI_DOUBLE_INT
};

enum class ReduceOp : std::uint8_t {
  replace,
  sum,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  minloc,  ///< of equal values the one with the lower index
  maxloc,
};

template <class V, class I>
struct Pair {
  V value;
  I index;
};

std::string_view name_of(ItemType t);
std::string_view name_of(ReduceOp op);
/// Throws an OptionError that lists the names.
ReduceOp reduce_op_from_name(std::string_view name);

template <class T>
inline constexpr ItemType item_type_v = ItemType::bytes;
#define ASTERISM_ITEM(T, N) \
  template <>               \
  inline constexpr ItemType item_type_v<T> = ItemType::N;
ASTERISM_ITEM(bool, boolean)
ASTERISM_ITEM(std::int8_t, int8)
ASTERISM_ITEM(std::int16_t, int16)
ASTERISM_ITEM(std::int32_t, int32)
ASTERISM_ITEM(std::int64_t, int64)
ASTERISM_ITEM(std::uint8_t, uint8)
ASTERISM_ITEM(std::uint16_t, uint16)
ASTERISM_ITEM(std::uint32_t, uint32)
ASTERISM_ITEM(std::uint64_t, uint64)
ASTERISM_ITEM(float, float32)
ASTERISM_ITEM(double, float64)
ASTERISM_ITEM(Complex<float>, complex64)
ASTERISM_ITEM(Complex<double>, complex128)
#undef ASTERISM_ITEM
template <>
inline constexpr ItemType item_type_v<Pair<std::int32_t, std::int32_t>> = ItemType::pair_int32;
template <>
inline constexpr ItemType item_type_v<Pair<std::int64_t, std::int64_t>> = ItemType::pair_int64;
template <>
inline constexpr ItemType item_type_v<Pair<float, std::int32_t>> = ItemType::pair_float32;
template <>
inline constexpr ItemType item_type_v<Pair<double, std::int64_t>> = ItemType::pair_float64;
template <>
inline constexpr ItemType item_type_v<Pair<double, std::int32_t>> = ItemType::pair_float64_int32;

/// k items of one type per root and leaf.
struct Items {
  ItemType type = ItemType::bytes;
  std::int64_t bytes = 1;  ///< of one item
  std::int64_t k = 1;
  std::int64_t unit() const { return bytes * k; }
  template <class T>
  static Items of(std::int64_t k) {
    return {item_type_v<T>, std::int64_t(sizeof(T)), k};
  }
};

/// inout[i] = op(inout[i], in[i]) for n values (of k items each, as the call that uses it has them).
using UserOp = std::function<void(void const* in, void* inout, std::int64_t n)>;

/// A built-in operation or the user's.
class Operation {
 public:
  Operation(ReduceOp op) : op_(op) {}  // NOLINT: the name is the operation
  explicit Operation(UserOp f) : user_(std::make_shared<UserOp>(std::move(f))) {}
  bool replaces() const { return !user_ && op_ == ReduceOp::replace; }
  ReduceOp op() const { return op_; }
  UserOp const* user() const { return user_.get(); }

 private:
  ReduceOp op_ = ReduceOp::replace;
  std::shared_ptr<UserOp> user_;
};

/// target[index[i]] = op(target[index[i]], data[i]) for i = 0..n in this order; index nullptr: i.
class Combine {
 public:
  Combine() = default;
  Combine(Operation const& op, Items const& items) { set(op, items); }
  /// Throws a DtypeError if the operation has no meaning for the items.
  void set(Operation const& op, Items const& items);
  /// Lets the user's operation go.
  void forget() {
    if (op_.user()) op_ = Operation(ReduceOp::replace);
  }
  void operator()(void* target, void const* data, std::int64_t const* index, std::int64_t n) const;
  /// target[apart i] = op(target[apart i], data[i]); false, and nothing is done, for operations that only know indices.
  bool strided(void* target, void const* data, std::int64_t apart, std::int64_t n) const;

 private:
  using Function = void (*)(void*, void const*, std::int64_t const*, std::int64_t, std::int64_t, std::int64_t);
  void user(void* target, void const* data, std::int64_t const* index, std::int64_t n) const;
  Operation op_ = ReduceOp::replace;
  Items items_;
  Function built_in_ = nullptr;
};

}  // namespace asterism::comm
