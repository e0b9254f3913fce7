// The words of device memory that tell a graph's kernels where the random stream stands.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace rush::cuda {

// words[0] = seed, words[1] = offset, in the stream's order. The numbers travel in the launch's arguments.
void set_replay_words(uint64_t* words, uint64_t seed, uint64_t offset, cudaStream_t stream);

}  // namespace rush::cuda
