#pragma once
#include "torch/types.h"
#include "torch/version.h"

namespace torch {
/// Whether both are undefined, or equal.
inline bool equal_if_defined(const Tensor& t1, const Tensor& t2) {
  return t1.defined() == t2.defined() && (!t1.defined() || equal(t1, t2));
}
}  // namespace torch
