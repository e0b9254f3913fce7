#pragma once
#include "torch/types.h"

// Not in torch::cuda, which would hide the names of rush::cuda.
namespace rush::cuda {
/// Whether there is a GPU, and convolutions and recurrent layers on it have cuDNN.
inline bool cudnn_is_available() { return is_available() && cudnn_is_acceptable(rush::ones({1}, kCUDA)); }
}  // namespace rush::cuda
