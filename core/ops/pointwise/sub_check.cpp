#include "core/ops/pointwise/sub_check.h"

namespace rush::native {

void check_sub(const Tensor& self, const Tensor& other) {
  const bool self_is_bool = self.scalar_type() == kBool, other_is_bool = other.scalar_type() == kBool;
  RUSH_CHECK_TYPE(!self_is_bool || !other_is_bool,
                  "sub: Subtraction, the `-` operator, with two bool tensors is not supported; use the `^` or "
                  "`logical_xor()` operator instead");
  RUSH_CHECK_TYPE(!self_is_bool && !other_is_bool,
                  "sub: Subtraction, the `-` operator, with a bool tensor is not supported; use the `~` or "
                  "`logical_not()` operator to invert a mask");
}

}  // namespace rush::native
