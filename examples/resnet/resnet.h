// Residual networks: He et al., "Deep residual learning for image recognition" (2015). Layers, their names and their
// order are torchvision's, so that its weights load by name. Shapes: N images of H by W pixels.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "nn/modules.h"

namespace examples {

struct ResNetConfig {
  std::array<int64_t, 4> depths = {2, 2, 2, 2};  // blocks of the four stages
  bool bottleneck = false;                       // blocks of three convolutions, with four times as many channels out
  int64_t num_classes = 1000;
  int64_t width = 64;  // channels of the first stage; each further one has twice as many

  /// The names that `of` takes.
  static std::vector<std::string> names() { return {"resnet18", "resnet34", "resnet50"}; }
  /// Throws rush::ValueError on another name.
  static ResNetConfig of(const std::string& name);
};

// relu(x + convolutions(x)), a normalisation behind each convolution. Where the shape changes, x goes through a
// convolution of its own.
class ResidualBlockImpl : public rush::nn::Module {
 public:
  // The stride is that of a convolution of 3 by 3: the first of two, or the middle one of a bottleneck.
  ResidualBlockImpl(int64_t in, int64_t width, int64_t stride, bool bottleneck);
  rush::Tensor forward(const rush::Tensor& x);  // (N, in, H, W) -> (N, width or 4 width, H / stride, W / stride)

 private:
  void add_convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride);

  std::vector<rush::nn::Conv2d> convs_;
  std::vector<rush::nn::BatchNorm2d> norms_;
  rush::nn::Sequential downsample{nullptr};
};
RUSH_MODULE(ResidualBlock);

class ResNetImpl : public rush::nn::Module {
 public:
  explicit ResNetImpl(const ResNetConfig& config);
  rush::Tensor forward(rush::Tensor x);  // (N, 3, H, W) -> (N, num_classes), scores of the classes

  /// Lays the convolutions' weights out as (out, kernel, kernel, in), for images in channels_last: Python's
  /// `model.to(memory_format=torch.channels_last)`.
  void to(rush::MemoryFormat format);
  using Module::to;

 private:
  rush::nn::Sequential stage(int64_t depth, int64_t width, int64_t stride, bool bottleneck);
  void initialise();

  int64_t channels_;  // of what the stages made so far return
  rush::nn::Conv2d conv1{nullptr};
  rush::nn::BatchNorm2d bn1{nullptr};
  rush::nn::Sequential layer1{nullptr}, layer2{nullptr}, layer3{nullptr}, layer4{nullptr};
  rush::nn::Linear fc{nullptr};
};
RUSH_MODULE(ResNet);

}  // namespace examples
