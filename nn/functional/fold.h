#pragma once
#include "core/tensor.h"
#include "nn/options/fold.h"

namespace rush::nn::functional {

/// Windows as columns: (N, C, H, W) -> (N, C kh kw, windows), also without N.
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);
/// Columns added up where their windows lie: (N, C kh kw, windows) -> (N, C, H, W), also without N.
Tensor fold(const Tensor& input, const FoldFuncOptions& options);

}  // namespace rush::nn::functional
