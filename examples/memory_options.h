// What a program says of the memory that it needs, and what it does to need less.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/device/device.h"
#include "examples/options.h"

namespace examples {

/// The options --estimate_memory and, for models of blocks, --checkpoint.
struct MemoryOptions {
  bool estimate = false;            // print what training needs, and train nothing
  std::string checkpoint = "none";  // none, every or auto

  void add_to(Options& options, bool has_blocks);
  /// How many of `blocks` compute again what the backward pass needs. For auto, as few as let a step fit into the
  /// device's memory: `steps` takes two steps with so many, for rush::estimate_memory.
  int64_t blocks_to_checkpoint(int64_t blocks, rush::Device device, const std::function<void(int64_t)>& steps) const;
  /// The same for an estimate, where auto is none.
  int64_t known_blocks(int64_t blocks) const { return checkpoint == "every" ? blocks : 0; }
};

/// Prints what `steps` needs, which takes two steps with batches of the size it is given, on the meta device; and where
/// the device is there, the largest size that fits. `least` is the smallest that `steps` takes.
void print_memory_estimate(rush::Device device, int64_t batch_size, const std::function<void(int64_t)>& steps,
                           int64_t least = 1);

/// Prints what generation keeps of a sequence.
void print_key_value_cache(int64_t bytes);

}  // namespace examples
