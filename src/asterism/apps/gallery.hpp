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

/// First-order upwind convection-diffusion, -epsilon Laplace u + w . grad u, on the unit square or cube:
/// unsymmetric for a velocity w other than zero.
la::Matrix convection_diffusion(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, double epsilon,
                                std::vector<double> const& velocity, Dtype dtype);

/// Linear elasticity, trilinear hexahedra on nx x ny x nz cubic cells, clamped where x = 0; three
/// unknowns a node, ordered by node. The near-null space (six rigid-body modes) and the block size
/// are attached to the matrix.
la::Matrix elasticity(comm::Communicator const& comm, std::array<std::int64_t, 3> cells, double youngs_modulus, double poisson_ratio,
                      Dtype dtype);

}  // namespace asterism::apps
