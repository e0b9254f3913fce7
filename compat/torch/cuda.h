#pragma once
#include "torch/types.h"

namespace torch::cuda {
/// Whether there is a GPU, and convolutions and recurrent layers on it have cuDNN.
inline bool cudnn_is_available() { return is_available() && cudnn_is_acceptable(rush::ones({1}, kCUDA)); }
}  // namespace torch::cuda
