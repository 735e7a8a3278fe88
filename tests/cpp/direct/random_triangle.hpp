#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "asterism/direct/triangular/local_triangle.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace direct_tests {

using namespace asterism;
using namespace asterism::direct;

/// A block lower triangle with random supernodes, and the same as a dense matrix.
struct RandomTriangle {
  std::shared_ptr<Supernodes> nodes = std::make_shared<Supernodes>();
  std::shared_ptr<BlockPattern const> pattern;
  std::int32_t n = 0;
  std::vector<std::complex<double>> dense;                // row-major
  std::vector<std::vector<std::complex<double>>> panels;  // column-major, (width + below) x width

  RandomTriangle(unsigned seed, int supernodes, int most_width, double density) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1), chance(0, 1);
    nodes->starts = {0};
    for (int s = 0; s < supernodes; ++s) {
      n += 1 + std::int32_t(random() % unsigned(most_width));
      nodes->starts.push_back(n);
    }
    nodes->row_offsets = {0};
    dense.assign(std::size_t(n) * std::size_t(n), 0.0);
    for (int s = 0; s < supernodes; ++s) {
      nodes->parent.push_back(-1);
      auto const first = nodes->starts[std::size_t(s)], end = nodes->starts[std::size_t(s) + 1];
      std::vector<std::int32_t> rows;
      for (auto i = first; i < end; ++i) rows.push_back(i);
      for (auto i = end; i < n; ++i)
        if (chance(random) < density) {
          rows.push_back(i);
          nodes->row_indices.push_back(i);
        }
      nodes->row_offsets.push_back(std::int64_t(nodes->row_indices.size()));
      std::vector<std::complex<double>> panel(rows.size() * std::size_t(end - first));
      for (auto j = first; j < end; ++j)
        for (std::size_t r = 0; r < rows.size(); ++r) {
          if (rows[r] < j) continue;
          std::complex<double> v(number(random), number(random));
          if (rows[r] == j) v += 4.0;
          v /= double(rows[r] == j ? 1 : n);
          panel[std::size_t(j - first) * rows.size() + r] = v;
          dense[std::size_t(rows[r]) * std::size_t(n) + std::size_t(j)] = v;
        }
      panels.push_back(std::move(panel));
    }
    pattern = std::make_shared<BlockPattern const>(nodes);
  }

  /// In the precision of T, real parts only where T is real.
  template <class T>
  static T as(std::complex<double> v) {
    if constexpr (std::is_floating_point_v<T>) return T(v.real());
    else return T(decltype(T().re)(v.real()), decltype(T().re)(v.imag()));
  }
  template <class T>
  std::shared_ptr<LocalTriangle> triangle(ProcessGrid const& grid, int rank) const {
    auto out = std::make_shared<LocalTriangle>(pattern, grid, rank, dtype_v<T>);
    for (std::int32_t k = 0; k < pattern->count(); ++k) {
      std::vector<T> panel;
      for (auto const v : panels[std::size_t(k)]) panel.push_back(as<T>(v));
      out->take(k, panel.data(), pattern->nodes().width(k) + pattern->nodes().below(k), false);
    }
    return out;
  }
  /// The largest |b - T x| or |b - T^T x| over |x|.
  template <class T>
  double error(Sweep sweep, std::int64_t columns, std::vector<T> const& x, std::vector<T> const& b) const {
    double worst = 0, largest = 1e-300;
    for (std::int32_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < columns; ++c) {
        auto const at = [&](std::vector<T> const& v, std::int32_t row) {
          auto const y = v[std::size_t(std::int64_t(row) * columns + c)];
          if constexpr (std::is_floating_point_v<T>) return std::complex<double>(y);
          else return std::complex<double>(y.re, y.im);
        };
        auto r = at(b, i);
        for (std::int32_t j = 0; j < n; ++j) {
          auto const d = sweep == Sweep::forward ? dense[std::size_t(i) * std::size_t(n) + std::size_t(j)]
                                                 : dense[std::size_t(j) * std::size_t(n) + std::size_t(i)];
          r -= (is_complex(dtype_v<T>) ? d : std::complex<double>(d.real())) * at(x, j);
        }
        worst = std::max(worst, std::abs(r));
        largest = std::max(largest, std::abs(at(x, i)));
      }
    return worst / largest;
  }
};

template <class T>
std::vector<T> right_hand_side(std::int32_t n, std::int64_t columns) {
  std::vector<T> b;
  for (std::int64_t i = 0; i < n * columns; ++i) b.push_back(RandomTriangle::as<T>({std::cos(double(i)), std::sin(3.0 * double(i))}));
  return b;
}

}  // namespace direct_tests
