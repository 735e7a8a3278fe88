#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/base/progress.hpp"
#include "asterism/la/ordering/graph.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::la {
namespace {

/// Vertices by degree, each in one list at most.
class DegreeLists {
 public:
  explicit DegreeLists(std::size_t n) : head_(n + 1, -1), next_(n, -1), before_(n, -1), degree_(n, -1) {}
  void put(std::int32_t i, std::int32_t degree) {
    auto& head = head_[std::size_t(degree)];
    degree_[std::size_t(i)] = degree;
    before_[std::size_t(i)] = -1;
    next_[std::size_t(i)] = head;
    if (head >= 0) before_[std::size_t(head)] = i;
    head = i;
    least_ = std::min(least_, degree);
  }
  void remove(std::int32_t i) {
    auto const next = next_[std::size_t(i)], before = before_[std::size_t(i)];
    if (next >= 0) before_[std::size_t(next)] = before;
    (before >= 0 ? next_[std::size_t(before)] : head_[std::size_t(degree_[std::size_t(i)])]) = next;
  }
  std::int32_t degree(std::int32_t i) const { return degree_[std::size_t(i)]; }
  /// One of least degree, removed; there is one.
  std::int32_t take() {
    while (head_[std::size_t(least_)] < 0) ++least_;
    auto const i = head_[std::size_t(least_)];
    remove(i);
    return i;
  }

 private:
  std::vector<std::int32_t> head_, next_, before_, degree_;
  std::int32_t least_ = 0;
};

/// Eliminated vertices are elements: cliques of the vertices around them, kept as lists. A vertex has a list of elements and then one of
/// vertices, in the place of its neighbours: elimination never makes the two longer.
class QuotientGraph {
 public:
  explicit QuotientGraph(Graph const& g)
      : g_(g),
        n_(std::size_t(g_.size())),
        elements_(n_, 0),
        length_(n_),
        weight_(n_, 1),
        last_(n_),
        link_(n_, -1),
        mark_(n_, 0),
        seen_(n_, 0),
        outside_(n_, 0),
        size_(n_, 0),
        hash_(n_, 0),
        members_(n_),
        lists_(n_) {
    for (std::size_t i = 0; i < n_; ++i) length_[i] = std::int32_t(g_.degree(std::int32_t(i))), last_[i] = std::int32_t(i);
  }

  OrderWithWork order(double most_flops) {
    Progress progress("minimum degree ordering", double(n_));
    auto const dense = std::int32_t(std::max(16.0, 10 * std::sqrt(double(n_))));
    std::vector<std::int32_t> late;
    for (std::size_t i = 0; i < n_; ++i)
      if (length_[i] > dense) late.push_back(std::int32_t(i)), weight_[i] = 0;
    left_ = std::int32_t(n_ - late.size());
    for (std::size_t i = 0; i < n_; ++i)
      if (weight_[i] > 0) lists_.put(std::int32_t(i), std::min(length_[i], left_ - 1));
    out_.reserve(n_);
    while (left_ > 0 && flops_ <= most_flops) {
      eliminate(lists_.take());
      progress.at(double(out_.size()));
    }
    if (left_ == 0) out_.insert(out_.end(), late.begin(), late.end());
    return {std::move(out_), flops_};
  }

 private:
  std::int32_t* list(std::int32_t i) { return g_.neighbours.data() + g_.offsets[std::size_t(i)]; }
  std::int32_t weight(std::int32_t i) const { return weight_[std::size_t(i)]; }
  /// i and all that were merged with it are next.
  void put_out(std::int32_t i) {
    left_ -= weight(i);
    weight_[std::size_t(i)] = 0;
    for (auto k = i; k >= 0; k = link_[std::size_t(k)]) out_.push_back(k);
  }

  void eliminate(std::int32_t p) {
    collect(p);
    auto const before = left_;
    auto& around = members_[std::size_t(p)];
    std::int32_t total = 0;
    for (auto const i : around) total += weight(i), lists_.remove(i);
    // what each other element has beside those around p
    ++stamp_;
    for (auto const i : around)
      for (std::int32_t k = 0; k < elements_[std::size_t(i)]; ++k) {
        auto const e = std::size_t(list(i)[k]);
        if (members_[e].empty()) continue;
        if (seen_[e] != stamp_) seen_[e] = stamp_, outside_[e] = size_[e];
        outside_[e] -= weight(i);
      }
    put_out(p);
    for (auto const i : around) shorten(i, p, total);
    merge_alike(around);
    // those that left with p or were merged are no members
    around.erase(std::remove_if(around.begin(), around.end(), [&](std::int32_t i) { return weight(i) == 0; }), around.end());
    std::int32_t size = 0;
    for (auto const i : around) size += weight(i);
    size_[std::size_t(p)] = size;
    double const w = before - left_, b = size;  // columns that go, and rows below them
    flops_ += w * w * w / 3 + w * w * b + w * b * b;
    for (auto const i : around) lists_.put(i, std::clamp(degree_[std::size_t(i)] - weight(i), 0, std::max(left_ - weight(i), 0)));
  }

  /// The vertices around p become the members of element p; its elements are absorbed.
  void collect(std::int32_t p) {
    ++mark_of_p_;
    mark_[std::size_t(p)] = mark_of_p_;
    auto& around = members_[std::size_t(p)];
    auto const add = [&](std::int32_t i) {
      if (weight(i) == 0 || mark_[std::size_t(i)] == mark_of_p_) return;
      mark_[std::size_t(i)] = mark_of_p_;
      around.push_back(i);
    };
    auto const* const of_p = list(p);
    for (std::int32_t k = 0; k < elements_[std::size_t(p)]; ++k) {
      auto const e = std::size_t(of_p[k]);
      for (auto const i : members_[e]) add(i);
      std::vector<std::int32_t>().swap(members_[e]);
    }
    for (auto k = elements_[std::size_t(p)]; k < length_[std::size_t(p)]; ++k) add(of_p[k]);
  }

  /// Lists of a vertex around p, without what p stands for now, and its new degree, with its own weight in it.
  void shorten(std::int32_t i, std::int32_t p, std::int32_t total) {
    auto* const mine = list(i);
    auto const before = elements_[std::size_t(i)], end = length_[std::size_t(i)];
    std::int32_t at = 0, degree = 0;
    std::uint32_t hash = std::uint32_t(p);
    for (std::int32_t k = 0; k < before; ++k) {
      auto const e = std::size_t(mine[k]);
      if (members_[e].empty()) continue;
      if (outside_[e] == 0) continue;  // all of its members are around p; it is dropped from each of their lists
      degree += outside_[e];
      hash += std::uint32_t(e);
      mine[at++] = std::int32_t(e);
    }
    elements_[std::size_t(i)] = at + 1;
    // room for p: it stands for an element that was absorbed, or for itself among the vertices
    std::int32_t kept = 0;
    std::vector<std::int32_t>& vertices = spare_;
    vertices.clear();
    for (auto k = before; k < end; ++k) {
      auto const j = mine[k];
      if (weight(j) == 0 || mark_[std::size_t(j)] == mark_of_p_) continue;
      vertices.push_back(j);
      degree += weight(j);
      hash += std::uint32_t(j);
      ++kept;
    }
    mine[at++] = p;
    std::copy(vertices.begin(), vertices.end(), mine + at);
    length_[std::size_t(i)] = at + kept;
    if (degree == 0 && kept == 0) return put_out(i);  // nothing but p: it may go next, without fill
    degree_[std::size_t(i)] = total + std::min(degree, lists_.degree(i));
    hash_[std::size_t(i)] = hash;
  }

  /// Vertices with the same lists have the same neighbours for ever: they become one.
  void merge_alike(std::vector<std::int32_t>& around) {
    std::vector<std::int32_t>& by_hash = spare_;
    by_hash.clear();
    for (auto const i : around)
      if (weight(i) > 0) by_hash.push_back(i);
    std::sort(by_hash.begin(), by_hash.end(),
              [&](std::int32_t a, std::int32_t b) { return std::pair(hash_[std::size_t(a)], a) < std::pair(hash_[std::size_t(b)], b); });
    for (std::size_t x = 0; x < by_hash.size(); ++x) {
      auto const i = by_hash[x];
      if (weight(i) == 0) continue;
      bool marked = false;
      for (auto y = x + 1; y < by_hash.size() && hash_[std::size_t(by_hash[y])] == hash_[std::size_t(i)]; ++y) {
        auto const j = by_hash[y];
        if (weight(j) == 0 || length_[std::size_t(j)] != length_[std::size_t(i)] || elements_[std::size_t(j)] != elements_[std::size_t(i)])
          continue;
        if (!marked) {
          ++stamp_;
          for (std::int32_t k = 0; k < length_[std::size_t(i)]; ++k) seen_[std::size_t(list(i)[k])] = stamp_;
          marked = true;
        }
        if (!std::all_of(list(j), list(j) + length_[std::size_t(j)], [&](std::int32_t k) { return seen_[std::size_t(k)] == stamp_; }))
          continue;
        weight_[std::size_t(i)] += weight(j);
        degree_[std::size_t(i)] = std::min(degree_[std::size_t(i)], degree_[std::size_t(j)]);
        weight_[std::size_t(j)] = 0;
        link_[std::size_t(last_[std::size_t(i)])] = j;
        last_[std::size_t(i)] = last_[std::size_t(j)];
      }
    }
  }

  Graph g_;
  std::size_t n_;
  std::vector<std::int32_t> elements_, length_;     // of each vertex's lists: its elements; all
  std::vector<std::int32_t> weight_, last_, link_;  // vertices that were merged into one: how many (0: gone), and which
  std::vector<std::int64_t> mark_, seen_;           // stamps: around p; others
  std::vector<std::int32_t> outside_, size_;        // of elements
  std::vector<std::uint32_t> hash_;
  std::vector<std::vector<std::int32_t>> members_;  // of elements
  DegreeLists lists_;
  std::vector<std::int32_t> degree_ = std::vector<std::int32_t>(n_, 0), out_, spare_;
  std::int64_t mark_of_p_ = 0, stamp_ = 0;
  std::int32_t left_ = 0;
  double flops_ = 0;
};

}  // namespace

OrderWithWork minimum_degree_within(Graph const& g, double most_flops) { return QuotientGraph(g).order(most_flops); }

std::vector<std::int32_t> approximate_minimum_degree(Graph const& g) {
  return minimum_degree_within(g, std::numeric_limits<double>::infinity()).order;
}

}  // namespace asterism::la
