// Which operators the checks of derivatives reached: written by each test, read by the test `derivatives`.
#pragma once
#include <string>

#include "core/dispatch/op.h"

// From now on every gradcheck and gradgradcheck of this process adds the operators that it differentiates to the file
// at `path`, which is emptied: "aten::add.Tensor 2 (2, 3) < (2, 3) (3)", the order of the derivative, the shape of the
// first output and those of the tensor arguments that a gradient flows to.
void log_checked_derivatives(const std::string& path);

// Whether all that an operator has for a derivative is a node that says there is none.
inline bool derivative_is_missing(const rush::OpBase& op) {
  const std::string_view file = op.registered_at(rush::DispatchKey::Autograd).file_name();
  return file.ends_with("autograd/derivatives/none.cpp");
}
