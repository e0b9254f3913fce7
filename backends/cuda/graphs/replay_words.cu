#include "backends/cuda/graphs/replay_words.h"

#include "backends/cuda/launch_kernel.h"

namespace rush::cuda {

namespace {

__global__ void write_words(uint64_t* words, uint64_t seed, uint64_t offset) {
  words[0] = seed;
  words[1] = offset;
}

}  // namespace

void set_replay_words(uint64_t* words, uint64_t seed, uint64_t offset, cudaStream_t stream) {
  launch_kernel_on(stream, "CUDAGraph::replay", write_words, {1, 1}, words, seed, offset);
}

}  // namespace rush::cuda
