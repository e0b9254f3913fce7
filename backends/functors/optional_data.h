#pragma once
#include "core/tensor.h"

namespace rush {

// The data of a tensor that may be undefined.
template <class T>
T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data_ptr<T>() : nullptr;
}

}  // namespace rush
