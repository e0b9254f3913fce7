#pragma once
#include "torch/types.h"

namespace rush::cuda {
inline void device_synchronize() { synchronize(); }
}  // namespace rush::cuda
