// Signature: what a graph depends on beside the numbers in tensors.
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"

namespace rush::compiler {

/// The inputs' kinds and the state of the thread that calls: a graph is for calls with the same.
struct Signature {
  struct Input {
    DimVector sizes, strides;
    ScalarType dtype;
    Device device;
    bool requires_grad, has_grad, is_wrapped_number;
    size_t shares_with;  // the first input that has its storage, as when one tensor is given twice
    int64_t distance;    // from that one, in its storage
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;
  bool grad_mode, inference_mode;
  uint8_t autocast_devices;
  std::vector<ScalarType> autocast_dtypes;
  ScalarType default_dtype;
  uint64_t unseen_state;

  explicit Signature(const std::vector<Tensor>& tensors);  // now; throws ValueError where one is undefined
  bool operator==(const Signature&) const = default;
  /// And in strides, but in nothing else.
  bool differs_in_sizes(Signature other) const;
  /// Why a graph for `was` does not serve: "input 0 has dtype float16, was float32". Empty where they are the same.
  std::string difference_from(const Signature& was) const;
};

}  // namespace rush::compiler
