// The tests of several processes once more on GPUs, RUSH_TEST_DEVICE=cuda: over NCCL with a GPU for each, else over
// MPI. The default device is then that GPU.
#pragma once
#include "core/ops/basic.h"

namespace rush::testing {

inline bool on_gpus() { return get_default_device().is_cuda(); }

// Numbers of a CPU's generator are the same on every device.
inline Tensor here(const Tensor& t) { return t.to(get_default_device()); }

}  // namespace rush::testing
