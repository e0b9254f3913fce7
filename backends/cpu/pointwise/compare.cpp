#include "core/ops/pointwise/compare.h"

#include <algorithm>

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"
#include "backends/functors/compare.h"

namespace rush::cpu {

namespace {

void all_true(const Tensor& self, bool& result) {
  const bool* data = self.data_ptr<bool>();
  result = std::all_of(data, data + self.numel(), [](bool value) { return value; });
}

}  // namespace

void register_compare() {
  set_kernels(functors::CompareTable());
  set_kernels(functors::LogicTable());
  kernels::all_true.set(kCPU, all_true);
}

}  // namespace rush::cpu
