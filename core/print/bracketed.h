// Sizes in square brackets, for messages that share a phrase with libtorch's.
#pragma once
#include <string>

#include "core/array_ref.h"
#include "core/str.h"

namespace rush {

/// Sizes as libtorch writes them: [2, 3]. Elsewhere our messages write them as (2, 3).
inline std::string bracketed(IntArrayRef sizes) {
  std::string text = str(sizes);
  text.front() = '[';
  text.back() = ']';
  return text;
}

}  // namespace rush
