#include "asterism/apps/gallery.hpp"

#include <cmath>

#include "asterism/apps/row_function.hpp"

namespace asterism::apps {
namespace {

using comm::Layout;
using la::Matrix;

std::int64_t grid_points(std::vector<std::int64_t> const& shape) {
  ASTERISM_REQUIRE(!shape.empty() && shape.size() <= 3, shape, "a grid has 1, 2 or 3 dimensions, not {}.", shape.size());
  std::int64_t n = 1;
  for (auto const s : shape) {
    ASTERISM_REQUIRE(s >= 1, shape, "a grid needs at least one point in each direction, not {}.", s);
    n = checked_product(n, s, "grid");
  }
  return n;
}

void require_finite(double value, char const* what) {
  ASTERISM_REQUIRE(std::isfinite(value), value, "{} is {}; a finite number is needed.", what, value);
}

}  // namespace

Matrix poisson(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, Dtype dtype, PoissonOptions const& options) {
  auto const n = grid_points(shape);
  int const d = int(shape.size());
  auto eps = options.epsilon;
  if (eps.empty()) eps.assign(shape.size(), 1.0);
  ASTERISM_REQUIRE(eps.size() == shape.size(), shape, "poisson: {} coefficients for {} dimensions.", eps.size(), d);
  ASTERISM_REQUIRE(!options.box || options.epsilon.empty(), value,
                   "poisson: a box has no coefficients of directions. Take a star, or rotated_anisotropy.");
  for (auto const e : eps) require_finite(e, "poisson: a coefficient");
  auto const layout = Layout::even(comm, n);
  std::array<std::int64_t, 3> size{1, 1, 1}, stride{0, 0, 0};
  for (int a = 0; a < d; ++a) size[std::size_t(3 - d + a)] = shape[std::size_t(a)];
  stride = {size[1] * size[2], size[2], 1};
  std::array<double, 3> e{0, 0, 0};
  for (int a = 0; a < d; ++a) e[std::size_t(3 - d + a)] = eps[std::size_t(a)];
  Problem const problem{"poisson",
                        {fact("shape", shape),
                         fact("epsilon", eps),
                         {"stencil", options.box ? "box" : "star"},
                         {"neumann", options.neumann ? "true" : "false"}}};
  if (!options.box) {
    return from_row_function(problem, layout, dtype, 2 * d + 1, [&](std::int64_t i, auto const& put) {
      std::array<std::int64_t, 3> const x{i / stride[0], i / stride[1] % size[1], i % size[2]};
      double diagonal = 0;
      for (int a = 3 - d; a < 3; ++a) {
        auto const A = std::size_t(a);
        diagonal += options.neumann ? e[A] * double((x[A] > 0) + (x[A] + 1 < size[A])) : 2 * e[A];
      }
      for (int a = 3 - d; a < 3; ++a)
        if (x[std::size_t(a)] > 0) put(i - stride[std::size_t(a)], -e[std::size_t(a)]);
      put(i, diagonal);
      for (int a = 2; a >= 3 - d; --a)
        if (x[std::size_t(a)] + 1 < size[std::size_t(a)]) put(i + stride[std::size_t(a)], -e[std::size_t(a)]);
    });
  }
  return from_row_function(problem, layout, dtype, std::int64_t(std::pow(3, d)), [&](std::int64_t i, auto const& put) {
    std::array<std::int64_t, 3> const x{i / stride[0], i / stride[1] % size[1], i % size[2]};
    std::int64_t neighbours = 0;
    auto const each = [&](auto const& f) {
      for (std::int64_t a = d > 2 ? -1 : 0; a <= (d > 2 ? 1 : 0); ++a)
        for (std::int64_t b = d > 1 ? -1 : 0; b <= (d > 1 ? 1 : 0); ++b)
          for (std::int64_t c = -1; c <= 1; ++c) {
            if (x[0] + a < 0 || x[0] + a >= size[0] || x[1] + b < 0 || x[1] + b >= size[1] || x[2] + c < 0 || x[2] + c >= size[2]) continue;
            f(a, b, c);
          }
    };
    each([&](auto a, auto b, auto c) { neighbours += a || b || c; });
    double const diagonal = options.neumann ? double(neighbours) : std::pow(3.0, d) - 1;
    each([&](auto a, auto b, auto c) { put(i + a * stride[0] + b * stride[1] + c, a || b || c ? -1.0 : diagonal); });
  });
}

Matrix diffusion(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, Dtype dtype, DiffusionOptions const& options) {
  auto const n = grid_points(shape);
  int const d = int(shape.size());
  ASTERISM_REQUIRE(options.contrast > 0 && options.stretch > 0 && options.block >= 1, value,
                   "diffusion: contrast {} and stretch {} must be positive, and block {} at least 1.", options.contrast, options.stretch,
                   options.block);
  std::array<std::int64_t, 3> size{1, 1, 1};
  for (int a = 0; a < d; ++a) size[std::size_t(3 - d + a)] = shape[std::size_t(a)];
  std::array<std::int64_t, 3> const stride{size[1] * size[2], size[2], 1};
  auto const width = [&](std::int64_t x) { return std::pow(options.stretch, double(x)); };
  auto const largest = width(*std::max_element(shape.begin(), shape.end()) - 1);
  ASTERISM_REQUIRE(largest < 1e100 && largest > 1e-100, value, "diffusion: stretch {} makes cells of width {}.", options.stretch, largest);
  auto const coefficient = [&](std::array<std::int64_t, 3> const& x) {
    std::uint64_t z = 0;
    for (auto const c : x) {
      z = (z ^ std::uint64_t(c / options.block)) * 0x9e3779b97f4a7c15ull;
      z ^= z >> 29;
    }
    return z >> 20 & 1 ? options.contrast : 1;
  };
  Problem const problem{"diffusion",
                        {fact("shape", shape),
                         {"contrast", format("{}", options.contrast)},
                         {"block", format("{}", options.block)},
                         {"stretch", format("{}", options.stretch)}}};
  return from_row_function(problem, Layout::even(comm, n), dtype, 2 * d + 1, [&](std::int64_t i, auto const& put) {
    std::array<std::int64_t, 3> const x{i / stride[0], i / stride[1] % size[1], i % size[2]};
    std::array<double, 3> low{}, high{};
    double diagonal = 0;
    for (int a = 3 - d; a < 3; ++a) {
      auto const A = std::size_t(a);
      double area = 1;
      for (int other = 3 - d; other < 3; ++other)
        if (other != a) area *= width(x[std::size_t(other)]);
      double const half = width(x[A]) / (2 * coefficient(x));
      auto const conductance = [&](int step) {
        auto y = x;
        y[A] += step;
        bool const outside = y[A] < 0 || y[A] >= size[A];
        return area / (outside ? half : step < 0 ? width(y[A]) / (2 * coefficient(y)) + half : half + width(y[A]) / (2 * coefficient(y)));
      };
      low[A] = conductance(-1);
      high[A] = conductance(1);
      diagonal += low[A] + high[A];
    }
    for (int a = 3 - d; a < 3; ++a)
      if (x[std::size_t(a)] > 0) put(i - stride[std::size_t(a)], -low[std::size_t(a)]);
    put(i, diagonal);
    for (int a = 2; a >= 3 - d; --a)
      if (x[std::size_t(a)] + 1 < size[std::size_t(a)]) put(i + stride[std::size_t(a)], -high[std::size_t(a)]);
  });
}

Matrix rotated_anisotropy(comm::Communicator const& comm, std::array<std::int64_t, 2> shape, double epsilon, double theta, Dtype dtype) {
  auto const n = grid_points({shape[0], shape[1]});
  require_finite(epsilon, "rotated_anisotropy: epsilon");
  require_finite(theta, "rotated_anisotropy: theta");
  double const c = std::cos(theta), s = std::sin(theta);
  double const xx = c * c + epsilon * s * s, xy = (1 - epsilon) * c * s, yy = epsilon * c * c + s * s;
  // products of the one-dimensional matrices of masses and of slopes; the mixed term of the two first derivatives
  double const mass[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6}, slope[3] = {-1, 2, -1}, mixed[3] = {-0.5, 0, 0.5};
  Problem const problem{"rotated_anisotropy", {fact("shape", shape), {"epsilon", format("{}", epsilon)}, {"theta", format("{}", theta)}}};
  return from_row_function(problem, Layout::even(comm, n), dtype, 9, [&](std::int64_t i, auto const& put) {
    auto const x = i / shape[1], y = i % shape[1];
    for (std::int64_t a = -1; a <= 1; ++a)
      for (std::int64_t b = -1; b <= 1; ++b) {
        if (x + a < 0 || x + a >= shape[0] || y + b < 0 || y + b >= shape[1]) continue;
        auto const p = std::size_t(a + 1), q = std::size_t(b + 1);
        put(i + a * shape[1] + b, xx * slope[p] * mass[q] + yy * mass[p] * slope[q] - 2 * xy * mixed[p] * mixed[q]);
      }
  });
}

Matrix convection_diffusion(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, double epsilon,
                            std::vector<double> const& velocity, Dtype dtype) {
  auto const n = grid_points(shape);
  int const d = int(shape.size());
  ASTERISM_REQUIRE(velocity.size() == shape.size(), shape, "convection_diffusion: {} velocity components for {} dimensions.",
                   velocity.size(), d);
  require_finite(epsilon, "convection_diffusion: epsilon");
  for (auto const w : velocity) require_finite(w, "convection_diffusion: a component of the velocity");
  auto const layout = Layout::even(comm, n);
  std::array<std::int64_t, 3> size{1, 1, 1};
  std::array<double, 3> w{0, 0, 0};
  for (int a = 0; a < d; ++a) {
    size[std::size_t(3 - d + a)] = shape[std::size_t(a)];
    w[std::size_t(3 - d + a)] = velocity[std::size_t(a)];
  }
  std::array<std::int64_t, 3> const stride{size[1] * size[2], size[2], 1};
  Problem const problem{"convection_diffusion", {fact("shape", shape), {"epsilon", format("{}", epsilon)}, fact("velocity", velocity)}};
  return from_row_function(problem, layout, dtype, 2 * d + 1, [&](std::int64_t i, auto const& put) {
    std::array<std::int64_t, 3> const x{i / stride[0], i / stride[1] % size[1], i % size[2]};
    double diagonal = 0;
    std::array<double, 3> low{}, high{};
    for (int a = 3 - d; a < 3; ++a) {
      auto const A = std::size_t(a);
      double const h = 1.0 / double(size[A] + 1);
      low[A] = -epsilon / (h * h) - std::max(w[A], 0.0) / h;
      high[A] = -epsilon / (h * h) + std::min(w[A], 0.0) / h;
      diagonal -= low[A] + high[A];
    }
    for (int a = 3 - d; a < 3; ++a)
      if (x[std::size_t(a)] > 0) put(i - stride[std::size_t(a)], low[std::size_t(a)]);
    put(i, diagonal);
    for (int a = 2; a >= 3 - d; --a)
      if (x[std::size_t(a)] + 1 < size[std::size_t(a)]) put(i + stride[std::size_t(a)], high[std::size_t(a)]);
  });
}

namespace {
/// Stiffness of a unit cube of trilinear shape functions, 2 x 2 x 2 Gauss points.
std::array<std::array<double, 24>, 24> cube_stiffness(double E, double nu) {
  std::array<std::array<double, 24>, 24> K{};
  double const lambda = E * nu / ((1 + nu) * (1 - 2 * nu)), mu = E / (2 * (1 + nu));
  double const g[2] = {0.5 - 0.5 / std::sqrt(3.0), 0.5 + 0.5 / std::sqrt(3.0)};
  for (double const x : g)
    for (double const y : g)
      for (double const z : g) {
        double grad[8][3];
        for (int v = 0; v < 8; ++v) {
          double const s[3] = {v & 1 ? x : 1 - x, v & 2 ? y : 1 - y, v & 4 ? z : 1 - z};
          double const t[3] = {v & 1 ? 1.0 : -1.0, v & 2 ? 1.0 : -1.0, v & 4 ? 1.0 : -1.0};
          grad[v][0] = t[0] * s[1] * s[2];
          grad[v][1] = s[0] * t[1] * s[2];
          grad[v][2] = s[0] * s[1] * t[2];
        }
        for (int a = 0; a < 8; ++a)
          for (int b = 0; b < 8; ++b) {
            double const dot = grad[a][0] * grad[b][0] + grad[a][1] * grad[b][1] + grad[a][2] * grad[b][2];
            for (int i = 0; i < 3; ++i)
              for (int j = 0; j < 3; ++j)
                K[std::size_t(3 * a + i)][std::size_t(3 * b + j)] +=
                    0.125 * (lambda * grad[a][i] * grad[b][j] + mu * grad[a][j] * grad[b][i] + (i == j ? mu * dot : 0.0));
          }
      }
  return K;
}
}  // namespace

Matrix elasticity(comm::Communicator const& comm, std::array<std::int64_t, 3> cells, double E, double nu, Dtype dtype) {
  for (auto const c : cells) ASTERISM_REQUIRE(c >= 1, shape, "elasticity: {} cells in a direction; at least 1.", c);
  ASTERISM_REQUIRE(E > 0 && nu > -1 && nu < 0.5, value,
                   "elasticity: Young's modulus {} must be positive and Poisson's ratio {} in (-1, 0.5).", E, nu);
  auto const K = cube_stiffness(E, nu);
  // nodes with x >= 1; z runs fastest
  std::int64_t const nx = cells[0], ny = cells[1] + 1, nz = cells[2] + 1;
  auto const nodes = Layout::even(comm, nx * ny * nz);
  auto offsets = nodes.offsets();
  for (auto& o : offsets) o *= 3;
  auto const layout = Layout::from_offsets(comm, offsets);
  Problem const problem{"elasticity", {fact("cells", cells), {"youngs_modulus", format("{}", E)}, {"poisson_ratio", format("{}", nu)}}};
  auto A = from_row_function(problem, layout, dtype, 81, [&](std::int64_t row, auto const& put) {
    auto const node = row / 3, comp = row % 3;
    std::int64_t const x = node / (ny * nz) + 1, y = node / nz % ny, z = node % nz;
    for (std::int64_t X = std::max<std::int64_t>(x - 1, 1); X <= std::min(x + 1, nx); ++X)
      for (std::int64_t Y = std::max<std::int64_t>(y - 1, 0); Y <= std::min(y + 1, ny - 1); ++Y)
        for (std::int64_t Z = std::max<std::int64_t>(z - 1, 0); Z <= std::min(z + 1, nz - 1); ++Z) {
          double sum[3] = {0, 0, 0};
          // cells that hold both nodes
          for (std::int64_t cx = std::max(x, X) - 1; cx <= std::min(x, X); ++cx)
            for (std::int64_t cy = std::max(y, Y) - 1; cy <= std::min(y, Y); ++cy)
              for (std::int64_t cz = std::max(z, Z) - 1; cz <= std::min(z, Z); ++cz) {
                if (cx < 0 || cx >= cells[0] || cy < 0 || cy >= cells[1] || cz < 0 || cz >= cells[2]) continue;
                auto const a = (x - cx) + 2 * (y - cy) + 4 * (z - cz), b = (X - cx) + 2 * (Y - cy) + 4 * (Z - cz);
                for (std::int64_t j = 0; j < 3; ++j) sum[j] += K[std::size_t(3 * a + comp)][std::size_t(3 * b + j)];
              }
          auto const other = ((X - 1) * ny + Y) * nz + Z;
          for (std::int64_t j = 0; j < 3; ++j) put(3 * other + j, sum[j]);
        }
  });
  auto const space = A.range().with_block_size(3);
  la::Vector xyz(space.nodes(), Dtype::float64, 3);
  auto place = xyz.host<double>().begin();
  for (auto v = nodes.begin(); v < nodes.end(); ++v)
    for (auto const c : {v / (ny * nz) + 1, v / nz % ny, v % nz}) *place++ = double(c);
  A.set_space(space.with_coordinates(std::move(xyz)));
  return A;
}

}  // namespace asterism::apps
