// Whether two tensors agree, and where they do not.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.h"

namespace conformance {

/// |actual - expected| <= absolute + relative * |expected|
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// What is allowed between two results of a family ("linalg.norm") at this dtype on this device. A family that sums
/// many terms, in an order of its own, is allowed more in single precision.
Tolerance tolerance_for(rush::ScalarType dtype, const std::string& family, rush::Device device);
/// Likewise between gradients.
Tolerance gradient_tolerance_for(rush::ScalarType dtype, const std::string& family, rush::Device device);
/// The larger of each part.
Tolerance loosest(Tolerance a, Tolerance b);

/// Nothing when dtype, shape and all values agree; else what is wrong, in half a line. NaN equals NaN; integers and
/// bools must be equal.
std::optional<std::string> difference(const rush::Tensor& actual, const rush::Tensor& expected, Tolerance tolerance);

}  // namespace conformance
