#pragma once

#include "nn/module.h"

namespace examples {

/// How many numbers the parameters of a module and of all below it are.
inline int64_t parameter_count(const rush::nn::Module& module) {
  int64_t count = 0;
  for (const rush::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace examples
