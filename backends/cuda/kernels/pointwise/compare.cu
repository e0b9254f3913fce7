#include "core/ops/pointwise/compare.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/functors/compare.h"

namespace rush::cuda {

namespace {

struct IsFalse {
  const bool* data;
  __device__ bool operator()(int64_t i) const { return !data[i]; }
};

void all_true(const Tensor& self, bool& result) {
  result = !found_any("all_true", self.numel(), IsFalse{self.data_ptr<bool>()});
}

}  // namespace

void register_compare() {
  set_kernels(functors::CompareTable());
  kernels::all_true.set(kCUDA, all_true);
}

}  // namespace rush::cuda
