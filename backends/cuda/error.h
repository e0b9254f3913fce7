// What CUDA reports.
#pragma once
#include "core/error/error.h"

namespace rush {

/// A CUDA call or a CUDA library's call failed. Mirrors c10::AcceleratorError, torch.AcceleratorError in Python.
class CudaError : public Error {
 public:
  using Error::Error;
};

}  // namespace rush
