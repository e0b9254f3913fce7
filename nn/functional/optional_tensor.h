#pragma once
#include <optional>

#include "core/tensor.h"

namespace rush::nn::functional {

/// Options hold undefined tensors for what was not given; operators take nothing.
inline std::optional<Tensor> optional_tensor(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

}  // namespace rush::nn::functional
