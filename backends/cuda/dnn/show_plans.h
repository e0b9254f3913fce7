// Whether plans are shown.
#pragma once
#include <cstdlib>

namespace rush::cuda {

// RUSH_SHOW_PLANS=1: each plan that cuDNN chooses is printed to stderr.
inline bool shows_dnn_plans() {
  static const bool shows = [] {
    const char* text = std::getenv("RUSH_SHOW_PLANS");
    return text && *text && *text != '0';
  }();
  return shows;
}

}  // namespace rush::cuda
