// ElementWiseLoop: several element-wise kernels, and reductions of rows, in one pass over memory, as a backend makes
// it.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "core/array_ref.h"
#include "core/dispatch/kernel_listener.h"
#include "core/scalar_type.h"

namespace rush {

// Note [Row loops]
// A loop may have steps that reduce the rows of a place, such as the sum in softmax: its output has one element for
// each row, and later steps read it beside the row's elements, or compute with rows' elements alone. The rows lie in
// dimension 0 of the loop, which is merged with no other; the inputs of these steps are contiguous tensors. Where all
// elements are reduced to one, the loop has one row of them.
//
// A backend adds up a row in the order of its own reductions, so that a compiled function gives its bits. On the CPU
// the steps go through a block of whole rows one after another, Note [Fused loops on the CPU]. On a GPU they are cut
// into phases, of which each but the last ends in reductions, Note [Phases of a row].

/// Whether a kernel reduces rows, and whether the order in which it takes a row's elements shows in the result.
enum class Reduces { Nothing, InAnyOrder, InOrder };

/// Kernels that are to run one after the other on each element; see Note [Row loops] for those that reduce rows.
struct LoopDescription {
  /// Where operands lie.
  struct Place {
    ScalarType dtype = kFloat32;
    bool is_inner = false;        ///< what one kernel leaves for others, and nobody else sees: it has no memory
    bool is_host_number = false;  ///< one element in the host's memory, beside operands on a device
    bool is_row = false;          ///< a step makes it, one element for each row
    DimVector strides;            ///< of the loop's dimensions, in bytes; not of an inner one
  };
  /// A kernel and its operands, as numbers of places; the output first.
  struct Step {
    std::shared_ptr<const IteratorCall> call;
    std::vector<size_t> places;
    Reduces reduces = Reduces::Nothing;
    const void* called_before = nullptr;  ///< where the program's own code goes on; null if it is not known
  };
  /// Whether some step reduces rows.
  bool has_rows() const {
    return std::ranges::any_of(steps, [](const Step& step) { return step.reduces != Reduces::Nothing; });
  }

  DimVector shape;  ///< innermost dimension first; neighbours that are contiguous everywhere are one
  std::vector<Place> places;
  std::vector<Step> steps;
};

/// Made by Backend::fuse.
class ElementWiseLoop {
 public:
  virtual ~ElementWiseLoop() = default;
  /// Does what the first run would wait for, such as compiling, on the current device. Several loops may at once.
  virtual void prepare() {}
  /// With the address of each place's first element; null for inner ones. On the current device and stream.
  virtual void run(char* const* data) = 0;
};

}  // namespace rush
