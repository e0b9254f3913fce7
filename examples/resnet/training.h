// Trains a residual network on images of noise, to see that it learns and how fast.
#pragma once

#include <string>

#include "examples/precision.h"
#include "examples/resnet/resnet.h"
#include "rushlight.h"

namespace examples {

struct ResNetTrainingOptions {
  ResNetConfig model;
  int64_t batch_size = 32, image_size = 224;
  double learning_rate = 0.1, momentum = 0.9, weight_decay = 1e-4;
  bool channels_last = false;     // images and weights lie with their channels innermost
  std::string dtype = "float32";  // one of Precision::names
  rush::Device device = rush::kCPU;
};

/// One batch of images and labels, made once on the device and shown again at every step, so that what is timed is
/// training alone.
class ResNetTraining {
 public:
  /// Random numbers are the default generators'.
  explicit ResNetTraining(const ResNetTrainingOptions& options);

  /// Forward, backward and a step of SGD. Returns the loss before it, on the device, which has not been waited for.
  rush::Tensor step();

  const ResNet& model() const { return model_; }

 private:
  ResNet model_;
  Precision precision_;
  rush::amp::GradScaler scaler_;
  rush::optim::SGD optimizer_;
  rush::Tensor images_, labels_;  // (N, 3, H, W), (N)
};

}  // namespace examples
