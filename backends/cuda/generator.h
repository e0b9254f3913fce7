// The generator of a CUDA device.
#pragma once
#include "core/device/generator.h"

namespace rush::cuda {

// libtorch's at::CUDAGeneratorImpl. Throws as concrete_device does.
class CUDAGeneratorImpl : public GeneratorImpl {
 public:
  explicit CUDAGeneratorImpl(Device device = kCUDA, uint64_t seed = kDefaultSeed);
  // Throw CudaError while this thread captures a graph.
  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  // During a capture, a position that counts from where a replay starts: Note [Random numbers in graphs].
  PhiloxState reserve(uint64_t increments) override;
  intrusive_ptr<GeneratorImpl> clone() const override;
};

}  // namespace rush::cuda
