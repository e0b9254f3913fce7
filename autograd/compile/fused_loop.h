// FusedLoop: several element-wise calls of a graph, and reductions of rows, as one loop of a backend.
#pragma once
#include <memory>
#include <utility>
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
  /// With `is_one_row` all of the loop's elements are one row.
  FusedLoop(IntArrayRef sizes, Device device, std::vector<Place> places, std::vector<LoopDescription::Step> steps,
            bool is_one_row);

  /// Does what the first run would wait for. Several loops may at once.
  void prepare();
  /// Places as (new, read): the loop may write the first where it has read the second, of these tensors, of which
  /// nothing else is read again. None on a CPU, whose kernels go one after the other, nor where rows are read twice.
  using Reuses = std::vector<std::pair<size_t, size_t>>;
  Reuses reuses(const std::vector<Graph::Id>& unread) const;
  /// Reads from and writes to these, by the graph's numbers, and makes those that are new. A tensor that the program or
  /// a view holds is not reused.
  void run(std::vector<Tensor>& tensors, const Reuses& reuses = {});

 private:
  const Device device_;
  const std::vector<Place> places_;
  const std::vector<size_t> written_;  // numbers of places
  const bool is_empty_;
  std::unique_ptr<ElementWiseLoop> loop_;
};

/// Whether nothing else holds the tensor or its storage, all of which it is: so its memory may become another's.
bool owns_all_of_its_memory(const Tensor& tensor);

}  // namespace rush
