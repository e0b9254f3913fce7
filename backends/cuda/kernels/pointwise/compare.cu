#include "core/ops/pointwise/compare.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
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
  kernels::eq.set(kCUDA, map_to_bool<functors::Eq, AllTypes>);
  kernels::ne.set(kCUDA, map_to_bool<functors::Ne, AllTypes>);
  kernels::lt.set(kCUDA, map_to_bool<functors::Lt, RealAndBoolTypes>);
  kernels::le.set(kCUDA, map_to_bool<functors::Le, RealAndBoolTypes>);
  kernels::gt.set(kCUDA, map_to_bool<functors::Gt, RealAndBoolTypes>);
  kernels::ge.set(kCUDA, map_to_bool<functors::Ge, RealAndBoolTypes>);
  kernels::maximum.set(kCUDA, map<functors::Maximum, RealAndBoolTypes>);
  kernels::minimum.set(kCUDA, map<functors::Minimum, RealAndBoolTypes>);
  kernels::fmax.set(kCUDA, map<functors::Fmax, RealAndBoolTypes>);
  kernels::fmin.set(kCUDA, map<functors::Fmin, RealAndBoolTypes>);
  kernels::all_true.set(kCUDA, all_true);
}

}  // namespace rush::cuda
