// What stands for this folder in a build without CUDA.
#include "backends/cuda/jit/kernel.h"

namespace rush::cuda::jit {

struct Kernel::Loaded {};

Kernel::Kernel(Source source) {
  RUSH_THROW(NotImplementedError, source.name, ": the CUDA backend, which compiles kernels, is not part of this build");
}

void Kernel::load() const {}
void Kernel::launch(const char*, const Shape&, void**) const {}

}  // namespace rush::cuda::jit
