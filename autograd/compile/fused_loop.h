// FusedLoop: several element-wise calls of a graph, and reductions of rows, as one loop of a backend.
#pragma once
#include <memory>
#include <vector>

#include "autograd/compile/graph.h"
#include "core/compile/element_wise_loop.h"

namespace rush {

/// A loop and the tensors of the graph that it works on.
class FusedLoop {
 public:
  /// A tensor of the graph, or what is not seen outside of the loop.
  struct Place {
    Graph::Id id = Graph::kNone;  ///< none: not seen outside
    bool is_new = false;          ///< the loop makes it
    bool is_row = false;          ///< one element for each row, with the last dimension or without: Note [Row loops]
    ScalarType dtype = kFloat32;
    DimVector sizes = {}, strides = {};  ///< in elements
    Device device = {};
  };

  /// A loop over `sizes` on `device`; each place has those, or broadcasts to them, or has one element for each row.
  FusedLoop(IntArrayRef sizes, Device device, std::vector<Place> places, std::vector<LoopDescription::Step> steps);

  /// Does what the first run would wait for. Several loops may at once.
  void prepare();
  /// Reads from and writes to these, by the graph's numbers, and makes those that are new.
  void run(std::vector<Tensor>& tensors);
  size_t kernels() const { return kernels_; }  ///< how many run in it

 private:
  const Device device_;
  const std::vector<Place> places_;
  const size_t kernels_;
  bool is_empty_;
  std::unique_ptr<ElementWiseLoop> loop_;
};

}  // namespace rush
