// Tensors in print as libtorch prints them, which is not as Python does: columns of one width, below them the type and
// the sizes, "[ CPUFloatType{2,3} ]".
#pragma once
#include "c10/macros/Macros.h"

#include <iosfwd>
#include <string>

#include "core/print/tensor_printer.h"

namespace rush::detail {

// The text that libtorch's operator<< writes. Complex tensors, which it prints without their imaginary parts, are
// printed as in Python.
std::string libtorch_text(const Tensor& tensor);

inline const bool tensors_print_as_libtorch = (set_tensor_printer(libtorch_text), true);

}  // namespace rush::detail

namespace rush {

/// Writes `tensor` as std::cout << tensor does, with at most `linesize` characters in a row of a matrix.
std::ostream& print(std::ostream& stream, const Tensor& tensor, int64_t linesize);
/// To std::cout.
void print(const Tensor& tensor, int64_t linesize = 80);

}  // namespace rush
