#include "backends/cuda/memory/allocator_config.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "core/error/error.h"

namespace rush::cuda {

namespace {

constexpr size_t kMiB = 1024 * 1024;

bool parse_flag(std::string_view name, std::string_view value) {
  if (value == "True" || value == "true" || value == "1") return true;
  if (value == "False" || value == "false" || value == "0") return false;
  RUSH_THROW(ValueError, "RUSH_CUDA_ALLOC_CONF: ", name, " is True or False, got '", value, "'");
}

template <class T>
T parse_number(std::string_view name, std::string_view value, T least, T most) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  RUSH_CHECK_VALUE(error == std::errc() && end == value.data() + value.size() && number >= least && number <= most,
                   "RUSH_CUDA_ALLOC_CONF: ", name, " is a number from ", least, " to ", most, ", got '", value, "'");
  return number;
}

void apply(AllocatorConfig& config, std::string_view name, std::string_view value) {
  if (name == "expandable_segments") {
    config.expandable_segments = parse_flag(name, value);
  } else if (name == "max_split_size_mb") {
    // Blocks up to 20 MiB share segments and must be split.
    config.max_split_size = parse_number<size_t>(name, value, 21, size_t{1} << 30) * kMiB;
  } else if (name == "garbage_collection_threshold") {
    config.garbage_collection_threshold = parse_number<double>(name, value, 0, 1);
  } else if (name == "passthrough") {
    config.passthrough = parse_flag(name, value);
  } else if (name == "debug") {
    config.debug = parse_flag(name, value);
  } else {
    RUSH_THROW(ValueError, "RUSH_CUDA_ALLOC_CONF: there is no setting '", name,
               "', there are expandable_segments, max_split_size_mb, garbage_collection_threshold, passthrough, debug");
  }
}

}  // namespace

AllocatorConfig AllocatorConfig::parse(std::string_view text) {
  AllocatorConfig config;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() < text.size() ? item.size() + 1 : item.size());
    const size_t colon = item.find(':');
    RUSH_CHECK_VALUE(colon != item.npos, "RUSH_CUDA_ALLOC_CONF: expected name:value, got '", item, "'");
    apply(config, item.substr(0, colon), item.substr(colon + 1));
  }
  return config;
}

const AllocatorConfig& AllocatorConfig::of_process() {
  static const AllocatorConfig config = [] {
    const char* text = std::getenv("RUSH_CUDA_ALLOC_CONF");
    return parse(text ? text : "");
  }();
  return config;
}

}  // namespace rush::cuda
