#include "core/ops/pointwise/sum_check.h"

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

void check_factor(const char* op, const char* name, ScalarType result, const Scalar& factor) {
  RUSH_CHECK_TYPE(!factor.is_boolean() || result == kBool, op, ": a bool ", name, " is for a bool result, which is ",
                  result, " here");
  RUSH_CHECK_TYPE(factor.is_integral(true) || !is_integral(result, true), op, ": the result is ", result, ", so ", name,
                  " must be an integer, too; got ", factor);
  RUSH_CHECK_TYPE(!factor.is_complex() || is_complex(result), op, ": the result is ", result, ", so ", name,
                  " must be a real number; got ", factor);
}

}  // namespace rush::native
