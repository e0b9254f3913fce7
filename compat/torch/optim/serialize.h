// The macros by which optimisers of a program's own write their options and states into archives.
#pragma once
#include "optim/archives.h"
#include "torch/types.h"

#define _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(OptimizerName) \
  torch::optim::serialize<OptimizerName##ParamState, OptimizerName##Options>(archive, self)

// An undefined tensor is not written.
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name)                                        \
  {                                                                                   \
    const c10::IValue value(name());                                                  \
    if (!value.isTensor() || value.toTensor().defined()) archive.write(#name, value); \
  }

#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)          \
  {                                                          \
    c10::IValue value;                                       \
    if (archive.try_read(#name, value)) name(value.to<T>()); \
  }

#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(T, name)         \
  {                                                                  \
    c10::IValue value;                                               \
    if (archive.try_read(#name, value)) name(value.toOptional<T>()); \
  }
