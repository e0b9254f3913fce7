// Stack: makes one example of a batch, whose tensors have a new first dimension.
#pragma once
#include "nn/data/example.h"
#include "nn/data/transforms/base.h"

namespace rush::data::transforms {

template <class ExampleType = Example<>>
struct Stack;

template <>
struct Stack<Example<>> : public BatchTransform<std::vector<Example<>>, Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override;
};

template <>
struct Stack<TensorExample> : public BatchTransform<std::vector<TensorExample>, TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override;
};

}  // namespace rush::data::transforms
