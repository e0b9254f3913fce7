// ElementWiseLoop: several element-wise kernels in one pass over memory, as a backend makes it.
#pragma once
#include <memory>
#include <vector>

#include "core/array_ref.h"
#include "core/dispatch/kernel_listener.h"
#include "core/scalar_type.h"

namespace rush {

/// Kernels that are to run one after the other on each element.
struct LoopDescription {
  /// Where operands lie.
  struct Place {
    ScalarType dtype = kFloat32;
    bool is_inner = false;        ///< what one kernel leaves for others, and nobody else sees: it has no memory
    bool is_host_number = false;  ///< one element in the host's memory, beside operands on a device
    DimVector strides;            ///< of the loop's dimensions, in bytes; not of an inner one
  };
  /// A kernel and its operands, as numbers of places; the output first.
  struct Step {
    std::shared_ptr<const IteratorCall> call;
    std::vector<int> places;
  };
  DimVector shape;  ///< innermost dimension first; neighbours that are contiguous everywhere are one
  std::vector<Place> places;
  std::vector<Step> steps;
};

/// Made by Backend::fuse.
class ElementWiseLoop {
 public:
  virtual ~ElementWiseLoop() = default;
  /// With the address of each place's first element; null for inner ones. On the current device and stream.
  virtual void run(char* const* data) = 0;
};

}  // namespace rush
