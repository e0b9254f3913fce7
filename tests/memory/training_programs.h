// Programs that take two training steps, whose memory is estimated and measured.
#pragma once
#include <optional>

#include "core/tensor.h"

namespace training_programs {

struct Gpt {
  int64_t width = 192, layers = 4, heads = 4, vocabulary = 512, block = 128, batch = 8;
  std::optional<rush::ScalarType> lower = std::nullopt;  // autocast's
  int64_t checkpointed = 0;
};
void train_gpt(rush::Device device, const Gpt& gpt);
void train_mnist(rush::Device device);
void train_lstm(rush::Device device);
void train_gcn(rush::Device device);
struct ResNet {
  const char* model = "resnet18";
  bool channels_last = false;
  int64_t batch = 8, image = 64;
};
void train_resnet(rush::Device device, const ResNet& resnet);

}  // namespace training_programs
