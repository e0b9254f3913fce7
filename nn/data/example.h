// What a dataset gives: data and what is to be learned of it.
#pragma once
#include "core/tensor.h"

namespace rush::data {

/// One example; or a batch of them, with the tensors stacked.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;

  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}

  Data data;
  Target target;
};

namespace example {
struct NoTarget {};  // for examples that are data alone
}  // namespace example

/// Data alone.
template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;

  Example() = default;
  Example(Data data) : data(std::move(data)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }

  Data data;
};
using TensorExample = Example<Tensor, example::NoTarget>;

}  // namespace rush::data
