// The CUDA devices' generators: the same state and the same numbers as the CPU's, see Note [One random stream].
#include "backends/cuda/generator.h"

#include <cstring>

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

bool CUDAGeneratorImpl::is_captured() const {
  return RUSH_UNLIKELY(current_capture != nullptr) && current_capture->device() == device().index;
}

std::vector<uint8_t> CUDAGeneratorImpl::get_state() const {
  if (!is_captured()) return GeneratorImpl::get_state();
  const uint64_t position = current_capture->position_of(*this);
  std::vector<uint8_t> state(sizeof(position));
  std::memcpy(state.data(), &position, sizeof(position));
  return state;
}

void CUDAGeneratorImpl::set_state(const std::vector<uint8_t>& state) {
  uint64_t position = 0;
  if (!is_captured() || state.size() != sizeof(position)) return GeneratorImpl::set_state(state);
  std::memcpy(&position, state.data(), sizeof(position));
  current_capture->set_position(*this, position);
}

PhiloxState CUDAGeneratorImpl::reserve(uint64_t increments) {
  return is_captured() ? current_capture->reserve(*this, increments) : GeneratorImpl::reserve(increments);
}

intrusive_ptr<GeneratorImpl> CUDAGeneratorImpl::clone() const {
  auto copy = make_intrusive<CUDAGeneratorImpl>(device(), current_seed());
  copy->set_offset(get_offset());
  return copy;
}

}  // namespace rush::cuda
