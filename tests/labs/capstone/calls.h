// Calls of a capstone's operator and of its reference, with inputs of any sizes, dtype and layout.
#pragma once
#include <optional>
#include <string>

#include "autograd/node.h"
#include "tests/labs/capstone/include/capstone.h"

namespace capstone {

enum class Layout { Contiguous, Transposed, EverySecond, Expanded };

/// Tensors of random numbers, which have the sizes that the subject gives for `sizes`.
rush::Tensors random_inputs(rush::IntArrayRef sizes, rush::ScalarType dtype);

/// The same numbers with other strides. Expanded, the rows are equal to the first one.
rush::Tensor laid_out(const rush::Tensor& t, Layout layout);

/// Registers the operator, once, and calls it by its name. Without a number the schema's default counts.
rush::Tensor call(rush::TensorList inputs, std::optional<double> number);

/// The reference's result for the same numbers in float64.
rush::Tensor reference(rush::TensorList inputs, double number);

/// Throws Error, with the first element that is wrong by more than the dtype of `got` explains.
void compare(const rush::Tensor& got, const rush::Tensor& expected, const std::string& what);

/// "a call with (2, 3), (3) of Float and 1e-05".
std::string describe(rush::TensorList inputs, double number);

}  // namespace capstone
