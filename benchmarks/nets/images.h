// Nets that see images, (N, C, H, W), from plain modules.
#pragma once
#include "benchmarks/nets/block.h"

namespace plain {

// PyTorch's example for MNIST: two convolutions, a pool and two linear layers.
inline nn::Sequential mnist_cnn() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 3)), nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(32, 64, 3)),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Dropout(0.25), nn::Flatten(), nn::Linear(9216, 128),
                        nn::ReLU(), nn::Dropout(0.5), nn::Linear(128, 10));
}

// Padded so that a stride of 1 keeps the size. Without a bias: the normalisation behind it has one.
inline nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t width, int64_t stride, bool is_bottleneck) {
    const int64_t out = is_bottleneck ? 4 * width : width;
    const nn::Sequential layers = is_bottleneck
                                      ? nn::Sequential(convolution(in, width, 1), nn::BatchNorm2d(width), nn::ReLU(),
                                                       convolution(width, width, 3, stride), nn::BatchNorm2d(width),
                                                       nn::ReLU(), convolution(width, out, 1), nn::BatchNorm2d(out))
                                      : nn::Sequential(convolution(in, width, 3, stride), nn::BatchNorm2d(width),
                                                       nn::ReLU(), convolution(width, out, 3), nn::BatchNorm2d(out));
    body = register_module("body", layers);
    if (stride == 1 && in == out) return;
    shortcut = register_module("shortcut", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
  }

  Tensor forward(const Tensor& x) { return relu(body->forward(x) + (shortcut ? shortcut->forward(x) : x)); }

  nn::Sequential body{nullptr}, shortcut{nullptr};
};
RUSH_MODULE(ResidualBlock);

// He et al., "Deep residual learning for image recognition" (2015): `depths` blocks in the stages.
inline nn::Sequential resnet(const std::vector<int64_t>& depths, bool is_bottleneck) {
  nn::Sequential net(convolution(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  int64_t channels = 64, width = 64;
  for (const int64_t depth : depths) {
    for (int64_t i = 0; i < depth; ++i) {
      net->push_back(ResidualBlock(channels, width, i == 0 && width > 64 ? 2 : 1, is_bottleneck));
      channels = is_bottleneck ? 4 * width : width;
    }
    width *= 2;
  }
  net->extend(*nn::Sequential(nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(channels, 1000)));
  return net;
}

// Dosovitskiy et al., "An image is worth 16x16 words" (2020).
struct VitImpl : nn::Module {
  VitImpl(int64_t side, int64_t patch, int64_t layers, const BlockOptions& o)
      : patches(register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, o.width, patch).stride(patch)))),
        blocks(register_module("blocks", blocks_of(layers, o))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        head(register_module("head", nn::Linear(o.width, 1000))),
        token(register_parameter("token", zeros({1, 1, o.width}))),
        positions(register_parameter("positions", randn({1, (side / patch) * (side / patch) + 1, o.width}) * 0.02)) {}

  Tensor forward(const Tensor& x) {
    const Tensor words = patches(x).flatten(2).transpose(1, 2);  // (N, C, h, w) -> (N, h * w, C)
    const Tensor all = cat({token.to(words.scalar_type()).expand({x.size(0), -1, -1}), words}, 1) + positions;
    return head(norm(blocks->forward(all)).select(1, 0));
  }

  nn::Conv2d patches;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  Tensor token, positions;
};
RUSH_MODULE(Vit);

// Ronneberger, Fischer, Brox, "U-Net" (2015), with padded and normalised convolutions: (N, 3, H, W) -> (N, 2, H, W).
struct UNetImpl : nn::Module {
  UNetImpl(int64_t width, int64_t depth) {
    for (int64_t i = 0; i <= depth; ++i)
      down.push_back(register_module("down" + std::to_string(i), twice(i ? width << (i - 1) : 3, width << i)));
    for (int64_t i = depth; i-- > 0;) {
      const auto options = nn::ConvTranspose2dOptions(width << (i + 1), width << i, 2).stride(2);
      widen.push_back(register_module("widen" + std::to_string(i), nn::ConvTranspose2d(options)));
      up.push_back(register_module("up" + std::to_string(i), twice(width << (i + 1), width << i)));
    }
    head = register_module("head", nn::Conv2d(nn::Conv2dOptions(width, 2, 1)));
  }

  static nn::Sequential twice(int64_t in, int64_t out) {
    return nn::Sequential(convolution(in, out, 3), nn::BatchNorm2d(out), nn::ReLU(), convolution(out, out, 3),
                          nn::BatchNorm2d(out), nn::ReLU());
  }

  Tensor forward(const Tensor& image) {
    std::vector<Tensor> seen;
    Tensor x = down[0]->forward(image);
    for (size_t i = 1; i < down.size(); ++i) {
      seen.push_back(x);
      x = down[i]->forward(max_pool2d(x, 2));
    }
    for (size_t i = 0; i < up.size(); ++i) x = up[i]->forward(cat({seen[seen.size() - 1 - i], widen[i](x)}, 1));
    return head(x);
  }

  std::vector<nn::Sequential> down, up;
  std::vector<nn::ConvTranspose2d> widen;
  nn::Conv2d head{nullptr};
};
RUSH_MODULE(UNet);

// PyTorch's example of Kingma and Welling, "Auto-encoding variational Bayes" (2013): x are 784 numbers from 0 to 1.
struct VaeImpl : nn::Module {
  VaeImpl()
      : encoder(register_module("encoder", nn::Linear(784, 400))),
        mean(register_module("mean", nn::Linear(400, 20))),
        log_variance(register_module("log_variance", nn::Linear(400, 20))),
        decoder(register_module("decoder", nn::Sequential(nn::Linear(20, 400), nn::ReLU(), nn::Linear(400, 784)))) {}

  Tensor forward(const Tensor& x) { return decoder->forward(mean(relu(encoder(x)))).sigmoid(); }

  Tensor loss(const Tensor& x, const Tensor& wanted) {
    const Tensor hidden = relu(encoder(x)), mu = mean(hidden), s = log_variance(hidden);
    const Tensor scores = decoder->forward(mu + randn_like(s) * exp(s * 0.5));
    const Tensor divergence = -0.5 * (1 + s - mu.pow(2) - s.exp()).sum();
    return binary_cross_entropy_with_logits(scores, wanted, {}, {}, Reduction::Sum) + divergence;
  }

  nn::Linear encoder, mean, log_variance;
  nn::Sequential decoder;
};
RUSH_MODULE(Vae);

}  // namespace plain
