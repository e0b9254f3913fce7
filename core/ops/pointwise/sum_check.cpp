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

void check_alpha(const char* op, ScalarType result, const Scalar& alpha) {
  RUSH_CHECK_TYPE(!alpha.is_boolean() || result == kBool, op, ": a bool alpha is for a bool result, which is ", result,
                  " here");
  RUSH_CHECK_TYPE(alpha.is_integral(true) || !is_integral(result, true), op, ": the result is ", result,
                  ", so alpha must be an integer, too; got ", alpha);
  RUSH_CHECK_TYPE(!alpha.is_complex() || is_complex(result), op, ": the result is ", result,
                  ", so alpha must be a real number; got ", alpha);
}

}  // namespace rush::native
