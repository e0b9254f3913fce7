// How tensors are printed, for a program that wants it otherwise.
#pragma once
#include <string>

#include "core/tensor.h"

namespace rush {

using TensorPrinter = std::string (*)(const Tensor& tensor);

/// Makes `printer` what to_string and streams print tensors by; null for our own again. Not to be called while other
/// threads print.
void set_tensor_printer(TensorPrinter printer);

/// As Python's PyTorch prints: what to_string does while no other printer is set.
std::string python_text(const Tensor& tensor);

}  // namespace rush
