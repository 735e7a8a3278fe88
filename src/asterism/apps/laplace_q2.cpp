// The Laplacian with second-order elements: the problem of weak-scaling studies of multigrid (Mills, Adams and others 2025, section 9).
#include <cmath>

#include "asterism/apps/gallery.hpp"
#include "asterism/apps/row_function.hpp"

namespace asterism::apps {
namespace {

using i64 = std::int64_t;
using Triple = std::array<i64, 3>;
using Element = std::array<std::array<double, 27>, 27>;

/// The element matrix of a unit cube: nodes at 0, 1/2, 1 in each direction, the last the fastest.
Element element_stiffness() {
  double const g = std::sqrt(0.6) / 2;
  double const point[3] = {0.5 - g, 0.5, 0.5 + g}, weight[3] = {5.0 / 18, 8.0 / 18, 5.0 / 18};
  double value[3][3], slope[3][3];  // [point][shape function]
  for (int q = 0; q < 3; ++q) {
    double const x = point[q];
    double const v[3] = {(2 * x - 1) * (x - 1), 4 * x * (1 - x), x * (2 * x - 1)}, s[3] = {4 * x - 3, 4 - 8 * x, 4 * x - 1};
    for (int a = 0; a < 3; ++a) value[q][a] = v[a], slope[q][a] = s[a];
  }
  Element K{};
  for (int p = 0; p < 27; ++p) {
    int const at[3] = {p / 9, p / 3 % 3, p % 3};
    double grad[27][3];
    for (int a = 0; a < 27; ++a) {
      int const of[3] = {a / 9, a / 3 % 3, a % 3};
      for (int d = 0; d < 3; ++d) {
        double product = 1;
        for (int e = 0; e < 3; ++e) product *= e == d ? slope[at[e]][of[e]] : value[at[e]][of[e]];
        grad[a][d] = product;
      }
    }
    double const w = weight[at[0]] * weight[at[1]] * weight[at[2]];
    for (std::size_t a = 0; a < 27; ++a)
      for (std::size_t b = 0; b < 27; ++b) K[a][b] += w * (grad[a][0] * grad[b][0] + grad[a][1] * grad[b][1] + grad[a][2] * grad[b][2]);
  }
  return K;
}

/// One direction: points 1 to 2 cells - 1 are unknowns, 0 and 2 cells the border; cell c has the points 2 c, 2 c + 1 and 2 c + 2.
struct Line {
  i64 cells = 1;
  std::vector<i64> first;  ///< point of each box, and the end
  std::vector<i64> box;    ///< of each point

  /// Cut for `nodes` times `processes` boxes. A point between two boxes is of the upper one.
  Line(i64 n, i64 nodes, i64 processes) : cells(n), box(std::size_t(2 * n)) {
    auto const cut = [](i64 length, i64 parts, i64 c) { return length / parts * c + std::min(c, length % parts); };
    for (i64 a = 0; a < nodes; ++a) {
      i64 const begin = cut(n, nodes, a), length = cut(n, nodes, a + 1) - begin;
      for (i64 b = 0; b < processes; ++b) first.push_back(std::max<i64>(2 * (begin + cut(length, processes, b)), 1));
    }
    first.push_back(2 * n);
    for (std::size_t b = 0; b + 1 < first.size(); ++b)
      for (i64 p = first[b]; p < first[b + 1]; ++p) box[std::size_t(p)] = i64(b);
  }
  i64 size(i64 b) const { return first[std::size_t(b) + 1] - first[std::size_t(b)]; }
  /// Unknowns that share a cell with a point: [low, high].
  i64 low(i64 p) const { return std::max<i64>(p - (p % 2 ? 1 : 2), 1); }
  i64 high(i64 p) const { return std::min(p + (p % 2 ? 1 : 2), 2 * cells - 1); }
};

/// Cells that have both points: [begin, end].
i64 first_cell(i64 p, i64 q) { return (std::max(p, q) - 1) / 2; }
i64 last_cell(i64 p, i64 q) { return std::min(p, q) / 2; }

/// The number of each unknown.
class Numbering {
 public:
  Numbering(Triple const& cells, TwoLevelBoxes const& boxes, Triple const& processes)
      : processes_(processes),
        nodes_(boxes.nodes),
        line_{Line(cells[0], nodes_[0], processes[0]), Line(cells[1], nodes_[1], processes[1]), Line(cells[2], nodes_[2], processes[2])} {
    i64 const n = nodes_[0] * nodes_[1] * nodes_[2] * processes[0] * processes[1] * processes[2];
    offsets_.assign(std::size_t(n) + 1, 0);
    for (i64 r = 0; r < n; ++r) {
      auto const b = box_of(r);
      offsets_[std::size_t(r) + 1] = offsets_[std::size_t(r)] + line_[0].size(b[0]) * line_[1].size(b[1]) * line_[2].size(b[2]);
    }
  }
  Line const& along(std::size_t d) const { return line_[d]; }
  std::vector<i64> const& offsets() const { return offsets_; }
  i64 number(Triple const& p) const {
    Triple b, at;
    for (std::size_t d = 0; d < 3; ++d) b[d] = line_[d].box[std::size_t(p[d])], at[d] = p[d] - line_[d].first[std::size_t(b[d])];
    return offsets_[std::size_t(rank_of(b))] + (at[0] * line_[1].size(b[1]) + at[1]) * line_[2].size(b[2]) + at[2];
  }
  /// Of unknown `at` of a rank's box.
  Triple point(i64 rank, i64 at) const {
    auto const b = box_of(rank);
    i64 const y = line_[1].size(b[1]), z = line_[2].size(b[2]);
    return {line_[0].first[std::size_t(b[0])] + at / (y * z), line_[1].first[std::size_t(b[1])] + at / z % y,
            line_[2].first[std::size_t(b[2])] + at % z};
  }

 private:
  Triple box_of(i64 rank) const {
    auto const &n = nodes_, &p = processes_;
    i64 const in_node = p[0] * p[1] * p[2], node = rank / in_node, r = rank % in_node;
    return {node / (n[1] * n[2]) * p[0] + r / (p[1] * p[2]), node / n[2] % n[1] * p[1] + r / p[2] % p[1], node % n[2] * p[2] + r % p[2]};
  }
  i64 rank_of(Triple const& b) const {
    auto const &n = nodes_, &p = processes_;
    i64 const node = (b[0] / p[0] * n[1] + b[1] / p[1]) * n[2] + b[2] / p[2];
    return node * (p[0] * p[1] * p[2]) + (b[0] % p[0] * p[1] + b[1] % p[1]) * p[2] + b[2] % p[2];
  }
  Triple processes_, nodes_;
  std::array<Line, 3> line_;
  std::vector<i64> offsets_;
};

}  // namespace

la::Matrix laplace_q2(comm::Communicator const& comm, Triple cells, Dtype dtype, TwoLevelBoxes const& boxes) {
  bool const evenly = boxes.processes == Triple{0, 0, 0};
  i64 n = 1, ranks = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    ASTERISM_REQUIRE(cells[d] >= 1, shape, "laplace_q2: {} cells in a direction; at least 1.", cells[d]);
    n = checked_product(n, checked_product(2, cells[d], "cells") - 1, "grid");
    if (evenly) continue;
    ASTERISM_REQUIRE(boxes.nodes[d] >= 1 && boxes.processes[d] >= 1, shape, "laplace_q2: {} x {} boxes in a direction; at least 1.",
                     boxes.nodes[d], boxes.processes[d]);
    ranks *= checked_product(boxes.nodes[d], boxes.processes[d], "boxes");
  }
  ASTERISM_REQUIRE(evenly || ranks == comm.size(), shape,
                   "laplace_q2: nodes {} x {} x {} with processes {} x {} x {} are {} boxes for {} ranks.", boxes.nodes[0], boxes.nodes[1],
                   boxes.nodes[2], boxes.processes[0], boxes.processes[1], boxes.processes[2], ranks, comm.size());
  Numbering const numbering(cells, evenly ? TwoLevelBoxes{} : boxes, evenly ? Triple{1, 1, 1} : boxes.processes);
  auto const layout = evenly ? comm::Layout::even(comm, n) : comm::Layout::from_offsets(comm, numbering.offsets());
  auto const K = element_stiffness();
  auto const &X = numbering.along(0), &Y = numbering.along(1), &Z = numbering.along(2);
  i64 const box = evenly ? 0 : comm.rank(), first = numbering.offsets()[std::size_t(box)];
  Problem const problem{"laplace_q2", {fact("cells", cells), fact("nodes", boxes.nodes), fact("processes", boxes.processes)}};
  return from_row_function(problem, layout, dtype, 64, [&](i64 row, auto const& put) {
    auto const p = numbering.point(box, row - first);
    for (i64 x = X.low(p[0]); x <= X.high(p[0]); ++x)
      for (i64 y = Y.low(p[1]); y <= Y.high(p[1]); ++y)
        for (i64 z = Z.low(p[2]); z <= Z.high(p[2]); ++z) {
          double sum = 0;
          for (i64 a = first_cell(p[0], x); a <= last_cell(p[0], x); ++a)
            for (i64 b = first_cell(p[1], y); b <= last_cell(p[1], y); ++b)
              for (i64 c = first_cell(p[2], z); c <= last_cell(p[2], z); ++c) {
                auto const row_in_cell = ((p[0] - 2 * a) * 3 + p[1] - 2 * b) * 3 + p[2] - 2 * c;
                auto const column_in_cell = ((x - 2 * a) * 3 + y - 2 * b) * 3 + z - 2 * c;
                sum += K[std::size_t(row_in_cell)][std::size_t(column_in_cell)];
              }
          put(numbering.number({x, y, z}), sum);
        }
  });
}

}  // namespace asterism::apps
