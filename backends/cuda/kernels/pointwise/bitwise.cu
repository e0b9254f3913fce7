#include "core/ops/pointwise/bitwise.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/compare.h"
#include "core/ops/pointwise/compare.h"

namespace rush::cuda {

void register_bitwise() {
  kernels::logical_and.set(kCUDA, map_to_bool<functors::LogicalAnd, AllTypes>);
  kernels::logical_or.set(kCUDA, map_to_bool<functors::LogicalOr, AllTypes>);
  kernels::logical_xor.set(kCUDA, map_to_bool<functors::LogicalXor, AllTypes>);
  kernels::bitwise_and.set(kCUDA, map<functors::BitwiseAnd, IntegerAndBoolTypes>);
  kernels::bitwise_or.set(kCUDA, map<functors::BitwiseOr, IntegerAndBoolTypes>);
  kernels::bitwise_xor.set(kCUDA, map<functors::BitwiseXor, IntegerAndBoolTypes>);
  kernels::bitwise_left_shift.set(kCUDA, map<functors::LeftShift, IntegerTypes>);
  kernels::bitwise_right_shift.set(kCUDA, map<functors::RightShift, IntegerTypes>);
}

}  // namespace rush::cuda
