// Rushlight runs no TorchScript. What else this header brings in libtorch, operators among it, is here.
#pragma once
#include "torch/all.h"
#include "torch/library.h"

namespace torch::jit {
/// Not there: its name says so to a compiler, and the compiler to the program.
class [[deprecated(
    "Rushlight runs no TorchScript: build the module in C++, and read its weights with torch::load")]] Module;
namespace script {
using jit::Module;
}  // namespace script
template <class... Args>
void load(const Args&...) {
  static_assert(sizeof...(Args) == 0,
                "Rushlight runs no TorchScript: build the module in C++, and read its weights with torch::load");
}
}  // namespace torch::jit
