// The generator of a CUDA device.
#pragma once
#include "core/generator.h"

namespace rush::cuda {

// libtorch's at::CUDAGeneratorImpl. Throws as concrete_device does.
class CUDAGeneratorImpl : public GeneratorImpl {
 public:
  explicit CUDAGeneratorImpl(Device device = kCUDA, uint64_t seed = kDefaultSeed);
  intrusive_ptr<GeneratorImpl> clone() const override;
};

}  // namespace rush::cuda
