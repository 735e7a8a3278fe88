// Model problems, used by tests, examples and benchmarks alike. Each rank makes its own rows.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::apps {

struct PoissonOptions {
  bool box = false;             ///< 9/27-point (box) instead of 5/7-point (star)
  bool neumann = false;         ///< pure Neumann: the constants are in the null space
  std::vector<double> epsilon;  ///< coefficient of each direction (star only); default 1
};

/// -Laplace on a grid with unit spacing in 1 to 3 dimensions, Dirichlet values eliminated:
/// star: 2 d on the diagonal and -1 beside; box: 3^d - 1 and -1. The last index runs fastest.
la::Matrix poisson(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, Dtype dtype, PoissonOptions const& options = {});

struct DiffusionOptions {
  double contrast = 1;     ///< coefficient of half of the blocks, which a hash chooses; 1 in the others
  std::int64_t block = 8;  ///< cells of a block in each direction
  double stretch = 1;      ///< of a cell's width to that of the one before it, in each direction
};

/// Finite volumes for -div(k grad u) on cells whose widths grow from 1, Dirichlet values at the boundary; k is constant in a cell, and
/// resistances of two halves of cells add up (harmonic means).
la::Matrix diffusion(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, Dtype dtype,
                     DiffusionOptions const& options = {});

/// Bilinear finite elements for -div(Q diag(1, epsilon) Q^T grad u), where Q turns by theta, on square cells, Dirichlet values eliminated.
/// x goes with the first index.
la::Matrix rotated_anisotropy(comm::Communicator const& comm, std::array<std::int64_t, 2> shape, double epsilon, double theta, Dtype dtype);

/// First-order upwind convection-diffusion, -epsilon Laplace u + w . grad u, on the unit square or cube:
/// unsymmetric for a velocity w other than zero.
la::Matrix convection_diffusion(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, double epsilon,
                                std::vector<double> const& velocity, Dtype dtype);

/// Linear elasticity, trilinear hexahedra on nx x ny x nz cubic cells, clamped where x = 0; three
/// unknowns a node, ordered by node. The near-null space (six rigid-body modes) and the block size
/// are attached to the matrix.
la::Matrix elasticity(comm::Communicator const& comm, std::array<std::int64_t, 3> cells, double youngs_modulus, double poisson_ratio,
                      Dtype dtype);

/// How the unknowns of laplace_q2 are dealt to ranks. Without `processes` evenly, in the order of the grid.
struct TwoLevelBoxes {
  /// The cells are cut into a box for each node of a machine, and this into one for each of its processes. Ranks of a node follow each
  /// other; within both levels the last direction varies fastest. A rank's unknowns follow each other, in the order of its box.
  std::array<std::int64_t, 3> nodes{1, 1, 1}, processes{0, 0, 0};
};

/// -Laplace, triquadratic hexahedra (27 nodes, 3 x 3 x 3 Gauss points) on nx x ny x nz cubes of side 1, Dirichlet values eliminated.
/// (2 nx - 1) (2 ny - 1) (2 nz - 1) unknowns, up to 125 entries a row. In the order of the grid z runs fastest.
la::Matrix laplace_q2(comm::Communicator const& comm, std::array<std::int64_t, 3> cells, Dtype dtype, TwoLevelBoxes const& boxes = {});

}  // namespace asterism::apps
