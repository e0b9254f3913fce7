// Transforms of the examples' tensors, which leave the targets alone.
#pragma once
#include <functional>

#include "nn/data/example.h"
#include "nn/data/transforms/base.h"

namespace rush::data::transforms {

/// A function of the examples' tensors: derive from it, and write operator().
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  virtual Tensor operator()(Tensor input) = 0;  // takes the tensor's place
  Example<Tensor, Target> apply(Example<Tensor, Target> input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

/// A TensorTransform from a function.
template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

namespace detail {
// A number for each channel as a tensor (C, 1, 1).
Tensor per_channel(ArrayRef<double> values);
}  // namespace detail

/// (input - mean) / stddev, a number for each channel of (C, H, W), or one for all.
template <class Target = Tensor>
struct Normalize : public TensorTransform<Target> {
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean(detail::per_channel(mean)), stddev(detail::per_channel(stddev)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div_(stddev); }

  Tensor mean, stddev;
};

}  // namespace rush::data::transforms
