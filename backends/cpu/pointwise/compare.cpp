#include "core/ops/pointwise/compare.h"

#include <algorithm>

#include "backends/cpu/blocks.h"
#include "backends/cpu/register.h"
#include "backends/functors/compare.h"
#include "core/ops/pointwise/bitwise.h"

namespace rush::cpu {

namespace {

void all_true(const Tensor& self, bool& result) {
  const bool* data = self.data_ptr<bool>();
  result = std::all_of(data, data + self.numel(), [](bool value) { return value; });
}

}  // namespace

void register_compare() {
  kernels::eq.set(kCPU, map_to_bool<functors::Eq, AllTypes>);
  kernels::ne.set(kCPU, map_to_bool<functors::Ne, AllTypes>);
  kernels::lt.set(kCPU, map_to_bool<functors::Lt, RealAndBoolTypes>);
  kernels::le.set(kCPU, map_to_bool<functors::Le, RealAndBoolTypes>);
  kernels::gt.set(kCPU, map_to_bool<functors::Gt, RealAndBoolTypes>);
  kernels::ge.set(kCPU, map_to_bool<functors::Ge, RealAndBoolTypes>);
  kernels::maximum.set(kCPU, map<functors::Maximum, RealAndBoolTypes>);
  kernels::minimum.set(kCPU, map<functors::Minimum, RealAndBoolTypes>);
  kernels::fmax.set(kCPU, map<functors::Fmax, RealAndBoolTypes>);
  kernels::fmin.set(kCPU, map<functors::Fmin, RealAndBoolTypes>);
  kernels::all_true.set(kCPU, all_true);
  kernels::logical_and.set(kCPU, map_to_bool<functors::LogicalAnd, AllTypes>);
  kernels::logical_or.set(kCPU, map_to_bool<functors::LogicalOr, AllTypes>);
  kernels::logical_xor.set(kCPU, map_to_bool<functors::LogicalXor, AllTypes>);
  kernels::bitwise_and.set(kCPU, map<functors::BitwiseAnd, IntegerAndBoolTypes>);
  kernels::bitwise_or.set(kCPU, map<functors::BitwiseOr, IntegerAndBoolTypes>);
  kernels::bitwise_xor.set(kCPU, map<functors::BitwiseXor, IntegerAndBoolTypes>);
  kernels::bitwise_left_shift.set(kCPU, map<functors::LeftShift, IntegerTypes>);
  kernels::bitwise_right_shift.set(kCPU, map<functors::RightShift, IntegerTypes>);
}

}  // namespace rush::cpu
