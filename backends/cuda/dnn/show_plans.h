// Whether plans are shown.
#pragma once
#include "core/environment_flag.h"

namespace rush::cuda {

// RUSH_SHOW_PLANS=1: each plan that cuDNN chooses is printed to stderr.
inline bool shows_dnn_plans() {
  static const bool shows = environment_flag("RUSH_SHOW_PLANS");
  return shows;
}

}  // namespace rush::cuda
