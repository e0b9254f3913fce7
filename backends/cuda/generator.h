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
  // During a capture its state is a place in the graph's calls, which can be gone back to: 8 bytes, for this capture.
  std::vector<uint8_t> get_state() const override;
  void set_state(const std::vector<uint8_t>& state) override;
  // During a capture, a position that counts from where a replay starts: Note [Random numbers in graphs].
  PhiloxState reserve(uint64_t increments) override;
  intrusive_ptr<GeneratorImpl> clone() const override;

 private:
  // Whether what draws from it now becomes part of a graph.
  bool is_captured() const;
};

}  // namespace rush::cuda
