#include "examples/resnet/resnet.h"

#include "rushlight.h"

namespace examples {

namespace F = rush::nn::functional;
using rush::Tensor;
using rush::nn::BatchNorm2d;
using rush::nn::Conv2d;
using rush::nn::Sequential;

namespace {

constexpr int64_t kExpansion = 4;  // of the channels, at the end of a bottleneck

// Padded so that a stride of 1 keeps the size. Without a bias: the normalisation behind it has one.
Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return Conv2d(rush::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

}  // namespace

ResNetConfig ResNetConfig::of(const std::string& name) {
  if (name == "resnet18") return {{2, 2, 2, 2}, false};
  if (name == "resnet34") return {{3, 4, 6, 3}, false};
  RUSH_CHECK_VALUE(name == "resnet50", "ResNet: expected resnet18, resnet34 or resnet50, got '", name, "'");
  return {{3, 4, 6, 3}, true};
}

ResidualBlockImpl::ResidualBlockImpl(int64_t in, int64_t width, int64_t stride, bool bottleneck) {
  const int64_t out = bottleneck ? kExpansion * width : width;
  if (bottleneck) {
    add_convolution(in, width, 1, 1);
    add_convolution(width, width, 3, stride);
    add_convolution(width, out, 1, 1);
  } else {
    add_convolution(in, width, 3, stride);
    add_convolution(width, out, 3, 1);
  }
  if (stride == 1 && in == out) return;
  downsample = register_module("downsample", Sequential(convolution(in, out, 1, stride), BatchNorm2d(out)));
}

void ResidualBlockImpl::add_convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  const std::string number = std::to_string(convs_.size() + 1);
  convs_.emplace_back(register_module("conv" + number, convolution(in, out, kernel, stride)));
  norms_.emplace_back(register_module("bn" + number, BatchNorm2d(out)));
}

Tensor ResidualBlockImpl::forward(const Tensor& x) {
  const size_t last = convs_.size() - 1;
  Tensor y = x;
  for (size_t i = 0; i < last; ++i) y = norms_[i]->forward_relu(convs_[i](y));
  return norms_[last]->forward_relu(convs_[last](y), downsample ? downsample->forward(x) : x);
}

ResNetImpl::ResNetImpl(const ResNetConfig& config) : channels_(config.width) {
  conv1 = register_module("conv1", convolution(3, config.width, 7, 2));
  bn1 = register_module("bn1", BatchNorm2d(config.width));
  layer1 = register_module("layer1", stage(config.depths[0], config.width, 1, config.bottleneck));
  layer2 = register_module("layer2", stage(config.depths[1], 2 * config.width, 2, config.bottleneck));
  layer3 = register_module("layer3", stage(config.depths[2], 4 * config.width, 2, config.bottleneck));
  layer4 = register_module("layer4", stage(config.depths[3], 8 * config.width, 2, config.bottleneck));
  fc = register_module("fc", rush::nn::Linear(channels_, config.num_classes));
  initialise();
}

Sequential ResNetImpl::stage(int64_t depth, int64_t width, int64_t stride, bool bottleneck) {
  Sequential blocks;
  for (int64_t i = 0; i < depth; ++i) {
    blocks->push_back(ResidualBlock(channels_, width, i == 0 ? stride : 1, bottleneck));
    channels_ = bottleneck ? kExpansion * width : width;
  }
  return blocks;
}

// As torchvision: He's normal distribution over the outputs of a convolution. Normalisations begin with 1 and 0.
void ResNetImpl::initialise() {
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() == 4) rush::nn::init::kaiming_normal_(parameter, 0, rush::kFanOut, rush::kReLU);
  }
}

Tensor ResNetImpl::forward(Tensor x) {
  x = bn1->forward_relu(conv1(x));   // (N, width, H / 2, W / 2)
  x = rush::max_pool2d(x, 3, 2, 1);  // (N, width, H / 4, W / 4)
  x = layer1->forward(x);            // (N, width or 4 width, H / 4, W / 4)
  x = layer2->forward(x);            // twice the channels on half the size, from here on
  x = layer3->forward(x);
  x = layer4->forward(x);  // (N, 8 width or 32 width, H / 32, W / 32)
  return fc(rush::adaptive_avg_pool2d(x, 1).flatten(1));
}

void ResNetImpl::to(rush::MemoryFormat format) {
  for (Tensor& parameter : parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(format));
  }
}

}  // namespace examples
