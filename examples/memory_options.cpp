#include "examples/memory_options.h"

#include <algorithm>
#include <cstdio>

#include "core/device/backend.h"
#include "core/memory/byte_text.h"
#include "core/memory/estimate.h"

namespace examples {

namespace {

// Of the memory for tensors; the rest is for what kernels work in, which estimates do not see.
int64_t memory_to_fill(rush::Device device) { return rush::memory_for_tensors(device) / 20 * 19; }

}  // namespace

void MemoryOptions::add_to(Options& options, bool has_blocks) {
  options.add("--estimate_memory", &estimate, "print how much memory training needs, and train nothing");
  if (!has_blocks) return;
  options.add("--checkpoint", &checkpoint,
              "blocks that keep only their input, and compute the rest again in the backward pass; auto: as few as fit",
              {"none", "every", "auto"});
}

int64_t MemoryOptions::blocks_to_checkpoint(int64_t blocks, rush::Device device,
                                            const std::function<void(int64_t)>& steps) const {
  if (checkpoint != "auto") return known_blocks(blocks);
  const auto all_but = [&](int64_t kept) { steps(blocks - kept); };
  const int64_t count = blocks - rush::largest_that_fits(all_but, memory_to_fill(device), blocks, device);
  std::printf("%lld of %lld blocks are checkpointed\n", static_cast<long long>(count), static_cast<long long>(blocks));
  return count;
}

void print_memory_estimate(rush::Device device, int64_t batch_size, const std::function<void(int64_t)>& steps,
                           int64_t least) {
  const rush::MemoryEstimate estimate = rush::estimate_memory([&] { steps(batch_size); }, device);
  std::printf("a step of batch size %lld on %s, the training data apart\n%s", static_cast<long long>(batch_size),
              device.str().c_str(), estimate.table().c_str());
  if (!rush::is_available(device.type)) return;
  const int64_t most = rush::largest_that_fits([&](int64_t size) { steps(std::max(size, least)); },
                                               memory_to_fill(device), int64_t{1} << 20, device);
  std::printf("%s for tensors, of which one in 20 is left to kernels; the largest batch size that fits: %lld\n",
              rush::byte_text(rush::memory_for_tensors(device)).c_str(), static_cast<long long>(most));
}

void print_key_value_cache(int64_t bytes) {
  std::printf("keys and values of a sequence, while it is generated: %s\n", rush::byte_text(bytes).c_str());
}

}  // namespace examples
