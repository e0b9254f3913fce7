// A kernel that is compiled at run time, for the device that it is launched on. This header is part of every build.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/cuda/jit/source.h"

namespace rush::cuda::jit {

// Blocks of a grid, or threads of a block.
struct Extent {
  uint32_t x = 1, y = 1, z = 1;
};
// How many blocks, of how many threads, with how many bytes of dynamic shared memory.
struct Shape {
  Extent grid, block;
  size_t shared = 0;
};

// One __global__ function: the only one of Source::kernels. Compiled at its first launch, or taken from the caches of
// Note [Compiling at run time], and loaded on each device that it is launched on. It stays loaded until the process
// ends, as the library's own kernels do. Copies share what is loaded; several threads may launch it.
class Kernel {
 public:
  // Throws NotImplementedError where the CUDA backend is not built.
  explicit Kernel(Source source);

  // Compiles it for the current device and loads it there, so that the first launch need not. Throws as `compiled`, and
  // CudaError where there is no device.
  void load() const;

  // On the current stream of the current device, with the addresses of the parameters. Throws as `load`, and CudaError
  // naming the operator `op` when the launch is refused. May be captured in a graph.
  void launch(const char* op, const Shape& shape, void** parameters) const;

 private:
  struct Loaded;
  std::shared_ptr<Loaded> loaded_;
};

}  // namespace rush::cuda::jit
