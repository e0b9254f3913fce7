// FusedLoop: several element-wise kernels in one pass over memory.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "autograd/compile/lowering.h"

namespace rush {

// Note [Fused loops on the CPU]
// Each element-wise operator reads its operands from memory and writes its result there, and memory is what it waits
// for. A fused loop takes a block of elements through all of its kernels before it goes on to the next: what one
// kernel leaves for another stays in the first level of the cache, in a buffer of kBlock elements, and never gets to
// memory unless somebody else reads it. The kernels are those that the operators have (Note [Lowering]), given
// iterators over one block; so the results are the operators', bit for bit. Threads take blocks.
class FusedLoop {
 public:
  /// Where a kernel's operand lies.
  struct Place {
    Graph::Id id = Graph::kNone;  // of the graph's tensors; none: it is not seen outside
    bool is_new = false;          // the loop makes it
    int buffer = -1;              // of the thread's, where it is not seen outside
    ScalarType dtype = kFloat32;
    DimVector sizes = {}, strides = {};  // in elements
    DimVector loop_strides = {};         // in bytes, innermost first
  };
  struct Step {
    std::shared_ptr<const IteratorCall> call;
    std::vector<int> places;  // the output first
  };

  /// A loop over `sizes`; each place has those, or broadcasts to them.
  FusedLoop(IntArrayRef sizes, std::vector<Place> places, std::vector<Step> steps);
  ~FusedLoop();

  /// Reads from and writes to these, by the graph's numbers, and makes those that are new.
  void run(std::vector<Tensor>& tensors);
  size_t kernels() const { return steps_.size(); }
  const std::vector<Place>& places() const { return places_; }

 private:
  static constexpr int64_t kBlock = 2048;
  struct Walker;

  void set_loop_strides(IntArrayRef sizes);
  void assign_buffers();
  std::unique_ptr<Walker> take_walker();
  void give_back(std::unique_ptr<Walker> walker);
  void walk(Walker& walker, char* const* data, int64_t begin, int64_t end) const;

  std::vector<Place> places_;
  std::vector<Step> steps_;
  DimVector shape_;  // coalesced, innermost first
  int64_t blocks_in_run_ = 1, blocks_ = 0;
  int buffers_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Walker>> idle_;
};

}  // namespace rush
