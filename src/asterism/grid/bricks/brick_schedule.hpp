// In which order bricks are visited where several stages of work, each on what the last one made, go over memory once.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/grid/bricks/brick_domain.hpp"

namespace asterism::grid {

/// Stage s of a brick follows stage s - 1 of all bricks around it, and nothing that stage s - 1 reads is gone before it has: the last stage
/// may write the vector that the first one reads. What the first stages leave, and only the next one reads, is in slots, each of a brick,
/// which are used again as soon as all that is around has been done: these stay in the cache. The bricks are cut into columns whose ends
/// lean by a brick a stage (time skewing: Wonnacott 2000), along which stages follow each other by a few planes of points, or by a brick
/// where the first direction is not there. The columns are so thin that what a stage leaves is in a core's own cache when the next one
/// comes. For several threads the first direction is cut into shares that shrink with each stage; the gaps between them are a second phase,
/// as is the seam of a periodic direction. All stages but the last one are done on the copies of other ranks' bricks too.
class BrickSchedule {
 public:
  struct Batch {
    int stage;
    std::int64_t begin, count;  ///< in numbers()
    int first, last;            ///< planes of points of each brick
  };
  /// threads: that share the work. bytes_of_vector: of a brick, in each of so many vectors. least_planes: that stages may follow each other
  /// by; what the stencil reads along the first direction, or more. Time and memory: 4 bytes for each stage of each brick, times planes of
  /// a brick / 2 at most.
  /// held: so many first stages leave bricks in slots, if stages are interleaved.
  BrickSchedule(BrickDomain const& domain, int stages, int threads, std::int64_t bytes_of_vector, int vectors, std::int64_t least_planes,
                int held);
  /// How many stages, at most `most`, move the fewest bytes for each: columns of more stages are thinner, and more of their bricks stand at
  /// edges, where they go through memory for each stage. All of them where the domain fits into the caches.
  static std::int64_t stages_at_once(BrickDomain const& domain, std::int64_t most, std::int64_t bytes_of_vector, int vectors,
                                     std::int64_t least_planes);
  int const* numbers() const { return numbers_.data(); }
  /// Batches of a part are done in their order. Parts of a phase are independent, and all follow the phase before.
  std::vector<std::vector<std::vector<Batch>>> const& phases() const { return phases_; }
  /// Whether stages are interleaved; else there is not enough room, or they fit into the cache as they are.
  bool interleaved() const { return interleaved_; }
  /// Of each brick, of copies and of the brick of zeros, which has the first slot: where a stage leaves it.
  int const* slots(int stage) const { return slots_.data() + std::size_t(stage) * slots_of_stage_; }
  std::int64_t slot_count() const { return slot_count_; }

 private:
  void hold(BrickDomain const& domain, int stages, std::int64_t along_step);
  std::vector<int> numbers_, slots_;
  std::size_t slots_of_stage_ = 0;
  std::int64_t slot_count_ = 0;
  std::vector<std::vector<std::vector<Batch>>> phases_;
  bool interleaved_ = false;
};

}  // namespace asterism::grid
