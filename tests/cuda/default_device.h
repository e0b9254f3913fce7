// The tests of operators, modules and optimisers once more, on a GPU.
#pragma once

namespace rush::testing {

// Note [Tests on both devices]
// The tests of tests/ops, nn, optim and autograd are written for the default device: they make tensors by factories,
// fill some of them in memory, and read what comes out. Run with RUSH_TEST_DEVICE=cuda they do the same on a GPU, as
// they stand: the default device is CUDA, its memory is pinned memory of the host, and each operator waits for its
// kernels (as with CUDA_LAUNCH_BLOCKING=1), so that errors are thrown where they are expected. Those of compiled
// trainings run with RUSH_TEST_DEVICE=cuda:cached, too, as a user's program does: in memory of the caching allocator,
// which the host cannot read, and with nothing that waits, so that what they do is recorded.

// Prepares this process for such a run. False when there is no GPU, or the backend is not built.
bool use_cuda_by_default(bool is_readable);

}  // namespace rush::testing
