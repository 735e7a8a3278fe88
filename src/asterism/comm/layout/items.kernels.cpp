#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/comm/layout/items.hpp"

namespace asterism::comm {
namespace {

using i64 = std::int64_t;

constexpr std::string_view type_names[] = {"bytes",
                                           "bool",
                                           "int8",
                                           "int16",
                                           "int32",
                                           "int64",
                                           "uint8",
                                           "uint16",
                                           "uint32",
                                           "uint64",
                                           "float32",
                                           "float64",
                                           "complex64",
                                           "complex128",
                                           "(int32, int32)",
                                           "(int64, int64)",
                                           "(float32, int32)",
                                           "(float64, int64)",
                                           "(float64, int32)"};
constexpr std::string_view op_names[] = {"replace",     "sum",         "prod",       "min",         "max",    "logical_and", "logical_or",
                                         "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "minloc", "maxloc"};

template <class T>
inline constexpr bool is_pair_v = false;
template <class V, class I>
inline constexpr bool is_pair_v<Pair<V, I>> = true;

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return T(a + b);
  }
};
struct Prod {
  template <class T>
  static T apply(T a, T b) {
    return T(a * b);
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
struct LogicalAnd {
  template <class T>
  static T apply(T a, T b) {
    return T(a != T(0) && b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  static T apply(T a, T b) {
    return T(a != T(0) || b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  static T apply(T a, T b) {
    return T((a != T(0)) != (b != T(0)));
  }
};
struct BitAnd {
  template <class T>
  static T apply(T a, T b) {
    return T(a & b);
  }
};
struct BitOr {
  template <class T>
  static T apply(T a, T b) {
    return T(a | b);
  }
};
struct BitXor {
  template <class T>
  static T apply(T a, T b) {
    return T(a ^ b);
  }
};
struct MinLoc {
  template <class T>
  static T apply(T a, T b) {
    return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a;
  }
};
struct MaxLoc {
  template <class T>
  static T apply(T a, T b) {
    return a.value < b.value || (b.value == a.value && b.index < a.index) ? b : a;
  }
};

template <class T, class Op>
void combine(void* target, void const* data, i64 const* index, i64 apart, i64 n, i64 k) {
  auto* t = static_cast<T*>(target);
  auto const* d = static_cast<T const*>(data);
  if (!index && apart == 1) {
#pragma omp simd
    for (i64 i = 0; i < n * k; ++i) t[i] = Op::template apply<T>(t[i], d[i]);
  } else if (!index) {
    for (i64 i = 0; i < n; ++i, t += apart * k, d += k)
      for (i64 j = 0; j < k; ++j) t[j] = Op::template apply<T>(t[j], d[j]);
  } else if (k == 1) {
    for (i64 i = 0; i < n; ++i) t[index[i]] = Op::template apply<T>(t[index[i]], d[i]);
  } else {
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < k; ++j) t[index[i] * k + j] = Op::template apply<T>(t[index[i] * k + j], d[i * k + j]);
  }
}

using Function = void (*)(void*, void const*, i64 const*, i64, i64, i64);

template <class T>
Function built_in(ReduceOp op) {
  constexpr bool whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  constexpr bool real = whole || std::is_floating_point_v<T>;
  constexpr bool logical = std::is_integral_v<T>;
  constexpr bool number = real || is_complex_v<T>;
  switch (op) {
    case ReduceOp::sum:
      if constexpr (number) return combine<T, Sum>;
      break;
    case ReduceOp::prod:
      if constexpr (number) return combine<T, Prod>;
      break;
    case ReduceOp::min:
      if constexpr (real) return combine<T, Min>;
      break;
    case ReduceOp::max:
      if constexpr (real) return combine<T, Max>;
      break;
    case ReduceOp::logical_and:
      if constexpr (logical) return combine<T, LogicalAnd>;
      break;
    case ReduceOp::logical_or:
      if constexpr (logical) return combine<T, LogicalOr>;
      break;
    case ReduceOp::logical_xor:
      if constexpr (logical) return combine<T, LogicalXor>;
      break;
    case ReduceOp::bitwise_and:
      if constexpr (whole) return combine<T, BitAnd>;
      break;
    case ReduceOp::bitwise_or:
      if constexpr (whole) return combine<T, BitOr>;
      break;
    case ReduceOp::bitwise_xor:
      if constexpr (whole) return combine<T, BitXor>;
      break;
    case ReduceOp::minloc:
      if constexpr (is_pair_v<T>) return combine<T, MinLoc>;
      break;
    case ReduceOp::maxloc:
      if constexpr (is_pair_v<T>) return combine<T, MaxLoc>;
      break;
    default: break;
  }
  return nullptr;
}

Function built_in(ItemType t, ReduceOp op) {
  switch (t) {
    case ItemType::boolean: return built_in<bool>(op);
    case ItemType::int8: return built_in<std::int8_t>(op);
    case ItemType::int16: return built_in<std::int16_t>(op);
    case ItemType::int32: return built_in<std::int32_t>(op);
    case ItemType::int64: return built_in<std::int64_t>(op);
    case ItemType::uint8: return built_in<std::uint8_t>(op);
    case ItemType::uint16: return built_in<std::uint16_t>(op);
    case ItemType::uint32: return built_in<std::uint32_t>(op);
    case ItemType::uint64: return built_in<std::uint64_t>(op);
    case ItemType::float32: return built_in<float>(op);
    case ItemType::float64: return built_in<double>(op);
    case ItemType::complex64: return built_in<Complex<float>>(op);
    case ItemType::complex128: return built_in<Complex<double>>(op);
    case ItemType::pair_int32: return built_in<Pair<std::int32_t, std::int32_t>>(op);
    case ItemType::pair_int64: return built_in<Pair<std::int64_t, std::int64_t>>(op);
    case ItemType::pair_float32: return built_in<Pair<float, std::int32_t>>(op);
    case ItemType::pair_float64: return built_in<Pair<double, std::int64_t>>(op);
    case ItemType::pair_float64_int32: return built_in<Pair<double, std::int32_t>>(op);
    default: return nullptr;
  }
}

}  // namespace

std::string_view name_of(ItemType t) { return type_names[std::size_t(t)]; }
std::string_view name_of(ReduceOp op) { return op_names[std::size_t(op)]; }

ReduceOp reduce_op_from_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(op_names); ++i)
    if (op_names[i] == name) return ReduceOp(i);
  std::string all;
  for (auto const n : op_names) all += (all.empty() ? "" : ", ") + std::string(n);
  fail(ErrorKind::option, "op '{}' is not one of {}.", name, all);
}

void Combine::set(Operation const& op, Items const& items) {
  if (op_.user() || op.user()) op_ = op;
  else op_ = op.op();
  items_.type = items.type, items_.bytes = items.bytes, items_.k = items.k;
  built_in_ = nullptr;
  if (op_.user() || op_.replaces()) return;
  built_in_ = built_in(items.type, op_.op());
  ASTERISM_REQUIRE(
      built_in_, dtype,
      "op {} has no meaning for items of type {}. Sums and products are for numbers, min and max for real ones, logical operations "
      "for integers and bool, bitwise ones for integers, minloc and maxloc for (value, index) pairs.",
      name_of(op_.op()), name_of(items.type));
}

bool Combine::strided(void* target, void const* data, i64 apart, i64 n) const {
  if (!built_in_) return false;
  built_in_(target, data, nullptr, apart, n, items_.k);
  return true;
}

void Combine::operator()(void* target, void const* data, i64 const* index, i64 n) const {
  if (built_in_) return built_in_(target, data, index, 1, n, items_.k);
  if (op_.user()) return user(target, data, index, n);
  auto const unit = std::size_t(items_.unit());
  auto* t = static_cast<std::byte*>(target);
  auto const* d = static_cast<std::byte const*>(data);
  if (!index) std::memcpy(t, d, std::size_t(n) * unit);
  else
    for (i64 i = 0; i < n; ++i) std::memcpy(t + std::size_t(index[i]) * unit, d + std::size_t(i) * unit, unit);
}

/// The user's function sees many values at once: a target that comes several times is served once in each round.
void Combine::user(void* target, void const* data, i64 const* index, i64 n) const {
  auto const& f = *op_.user();
  if (!index) {
    if (n > 0) f(data, target, n);
    return;
  }
  auto const unit = std::size_t(items_.unit());
  auto* t = static_cast<std::byte*>(target);
  auto const* d = static_cast<std::byte const*>(data);
  std::unordered_map<i64, i64> seen;
  std::vector<std::vector<i64>> rounds;
  for (i64 i = 0; i < n; ++i) {
    auto const r = std::size_t(seen[index[i]]++);
    if (r == rounds.size()) rounds.emplace_back();
    rounds[r].push_back(i);
  }
  std::vector<std::byte> in, inout;
  for (auto const& round : rounds) {
    in.resize(round.size() * unit);
    inout.resize(round.size() * unit);
    for (std::size_t e = 0; e < round.size(); ++e) {
      std::memcpy(in.data() + e * unit, d + std::size_t(round[e]) * unit, unit);
      std::memcpy(inout.data() + e * unit, t + std::size_t(index[round[e]]) * unit, unit);
    }
    f(in.data(), inout.data(), i64(round.size()));
    for (std::size_t e = 0; e < round.size(); ++e) std::memcpy(t + std::size_t(index[round[e]]) * unit, inout.data() + e * unit, unit);
  }
}

}  // namespace asterism::comm
