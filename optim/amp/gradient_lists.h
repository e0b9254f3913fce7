// The gradients of an optimiser, as a gradient scaler unscales them: in lists that one call of the kernel takes.
#pragma once
#include <vector>

#include "core/ops/write_back.h"
#include "optim/optimizer.h"

namespace rush::amp {

// Gradients of one dtype on one device, and what a call takes with them.
struct GradientList {
  Device device;
  ScalarType dtype;
  std::vector<Tensor> grads;
  Tensor found_inf, inv_scale;  // one float32 each, on the device; made by the scaler
};

/// The gradients of all parameters that have one. A gradient that is not dense is replaced by a dense copy, which
/// `copies` writes back. Throws ValueError or TypeError where a gradient does not fit its parameter, is in float16 or
/// is not real.
std::vector<GradientList> gradient_lists(const optim::Optimizer& optimizer, native::WriteBack& copies);

}  // namespace rush::amp
