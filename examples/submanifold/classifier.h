// Tells shapes apart by submanifold convolutions.
#pragma once

#include "examples/submanifold/shapes.h"
#include "examples/submanifold/submanifold_conv.h"
#include "nn/nn.h"
#include "optim/optim.h"

namespace examples {

/// submanifold_conv with parameters: weight (out, in, kernel...) and bias (out), as nn::Conv2d and nn::Conv3d have
/// them. There are as many spatial dimensions as sizes of the kernel.
class SubmanifoldConvImpl : public rush::nn::Cloneable<SubmanifoldConvImpl> {
 public:
  SubmanifoldConvImpl(int64_t in_channels, int64_t out_channels, rush::IntArrayRef kernel_size, bool with_bias = true);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// (B, spatial..., in) -> (B, spatial..., out), both COO with the same sites.
  rush::Tensor forward(const rush::Tensor& input) { return submanifold_conv(input, weight, bias); }
  rush::Tensor forward(const rush::Tensor& input, const RuleBook& rules) {
    return submanifold_conv(input, weight, bias, rules);
  }

  rush::Tensor weight, bias;

 private:
  std::vector<int64_t> sizes_;  // of the weight
  bool with_bias_;
};
RUSH_MODULE(SubmanifoldConv);

/// `input`, (B, spatial..., C), on a grid of half the sizes: the features of the sites that fall together are added up.
rush::Tensor halved(const rush::Tensor& input);

/// Convolution, norm and ReLU, twice.
class SubmanifoldBlockImpl : public rush::nn::Module {
 public:
  SubmanifoldBlockImpl(int64_t in, int64_t out);
  rush::Tensor forward(rush::Tensor x);  // the sites stay

 private:
  SubmanifoldConv conv1{nullptr}, conv2{nullptr};
  rush::nn::BatchNorm1d bn1{nullptr}, bn2{nullptr};
};
RUSH_MODULE(SubmanifoldBlock);

/// Scores of the kinds of shapes: (N, 32, 32, 32, 1), COO -> (N, kinds)
class ShapeNetImpl : public rush::nn::Module {
 public:
  ShapeNetImpl();
  rush::Tensor forward(const rush::Tensor& shapes);

 private:
  SubmanifoldBlock block1{nullptr}, block2{nullptr}, block3{nullptr};
  rush::nn::Linear fc{nullptr};
};
RUSH_MODULE(ShapeNet);

/// Trains on new shapes at every step.
class ShapeClassifier {
 public:
  /// Random numbers are the device's default generator's.
  ShapeClassifier(rush::Device device, double learning_rate, int64_t steps);

  /// A step on `count` shapes of each kind; the loss before it, on the device, which has not been waited for.
  rush::Tensor step(int64_t count);
  /// Of the next step.
  double learning_rate() const { return schedule_.get_last_lr()[0]; }
  /// What it takes the shapes for: (N), places in kShapeNames.
  rush::Tensor guess(const Shapes& shapes);

 private:
  rush::Device device_;
  ShapeNet net_;
  rush::optim::AdamW optimizer_;
  rush::optim::OneCycleLR schedule_;
};

}  // namespace examples
