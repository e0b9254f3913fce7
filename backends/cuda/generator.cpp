// The CUDA devices' generators: the same state and the same numbers as the CPU's, see Note [One random stream].
#include "backends/cuda/generator.h"

#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/register.h"
#include "backends/cuda/thread_state.h"
#include "core/device/backend.h"

namespace rush::cuda {

CUDAGeneratorImpl::CUDAGeneratorImpl(Device device, uint64_t seed) : GeneratorImpl(concrete_device(device), seed) {}

void CUDAGeneratorImpl::set_current_seed(uint64_t seed) {
  check_not_capturing("seeding a generator");
  GeneratorImpl::set_current_seed(seed);
}

void CUDAGeneratorImpl::set_offset(uint64_t offset) {
  check_not_capturing("moving a generator");
  GeneratorImpl::set_offset(offset);
}

PhiloxState CUDAGeneratorImpl::reserve(uint64_t increments) {
  if (RUSH_UNLIKELY(current_capture != nullptr) && current_capture->device() == device().index)
    return current_capture->reserve(*this, increments);
  return GeneratorImpl::reserve(increments);
}

intrusive_ptr<GeneratorImpl> CUDAGeneratorImpl::clone() const {
  auto copy = make_intrusive<CUDAGeneratorImpl>(device(), current_seed());
  copy->set_offset(get_offset());
  return copy;
}

}  // namespace rush::cuda
