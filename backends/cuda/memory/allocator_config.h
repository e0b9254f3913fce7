// The settings of the caching allocator, from RUSH_CUDA_ALLOC_CONF.
#pragma once
#include <cstddef>
#include <limits>
#include <string_view>

namespace rush::cuda {

// "name:value,name:value", by PyTorch's names where it has them.
struct AllocatorConfig {
  bool expandable_segments = false;  // segments grow in place, through the driver's virtual memory
  // max_split_size_mb: larger blocks are never split, so that they stay whole for large requests.
  size_t max_split_size = std::numeric_limits<size_t>::max();
  // Above this part of the memory that the process may use, blocks long unused are freed before new ones are asked for.
  double garbage_collection_threshold = 0;
  bool passthrough = false;  // nothing is cached: compute-sanitizer then sees every block's true extent
  // Freed memory is filled with NaNs, and reported when it is reused while another stream may still be using it.
  bool debug = false;

  // Throws ValueError naming what it does not understand.
  static AllocatorConfig parse(std::string_view text);
  // Of this process, read once.
  static const AllocatorConfig& of_process();
};

}  // namespace rush::cuda
