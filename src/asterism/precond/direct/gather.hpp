// Vectors of all ranks on the first one.
#pragma once
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "asterism/la/gathered.hpp"

namespace asterism::precond {

/// Work on whole vectors by rank 0.
class FirstRank {
 public:
  FirstRank(la::Space const& space, std::string const& name) : space_(space) {
    if (space.comm().size() == 1) return;
    std::vector<std::int64_t> all(space.comm().rank() == 0 ? std::size_t(space.global_size()) : 0);
    std::iota(all.begin(), all.end(), 0);
    forest_ = comm::StarForest::from_layout(space, all);
    forest_.set_name(name);
  }

  /// From the ranks' rows to all of them on rank 0; none on one rank.
  comm::StarForest const& forest() const { return forest_; }
  /// y = f(x) as a task of y's queue: f(k, v) changes the n x k numbers v, row-major, on rank 0. What f needs travels with it. Collective.
  template <class T, class F>
  void submit(la::Vector const& x, la::Vector& y, F const& f) const {
    device::submit_without_form(
        y.queue(),
        [f, forest = forest_, n = space_.global_size(), k = x.columns(), alone = space_.comm().size() == 1,
         here = space_.comm().rank() == 0](device::Executor&, std::byte*, T const* b, T* z) {
          if (alone) {
            std::copy_n(b, n * k, z);
            return f(k, z);
          }
          std::vector<T> all(here ? std::size_t(n * k) : 0);
          forest.bcast(b, all.data(), k);
          if (here) f(k, all.data());
          forest.reduce(all.data(), z, comm::ReduceOp::replace, k);
        },
        device::update<std::byte>(space_.comm().order_token()), device::read<T>(x.data()), device::write<T>(y.data()));
  }

 private:
  la::Space space_;
  comm::StarForest forest_;  // from the ranks' rows to all of them on rank 0
};

}  // namespace asterism::precond
