// What operators on tensors with an order check.
#pragma once
#include "core/tensor.h"

namespace rush::native {

inline void check_ordered(const char* op, const Tensor& self) {
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), op, ": complex numbers have no order, got ", self.scalar_type());
}

}  // namespace rush::native
