// Tells sounds apart by their spectrograms.
#pragma once

#include "examples/spectrogram/mel_spectrogram.h"
#include "examples/spectrogram/sounds.h"
#include "rushlight.h"

namespace examples {

struct SoundNetImpl : rush::nn::Module {
  rush::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  rush::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  rush::nn::Linear fc{nullptr};

  SoundNetImpl() {
    using namespace rush::nn;
    const auto conv = [](int64_t in, int64_t out) {
      return Conv2d(Conv2dOptions(in, out, 3).stride(2).padding(1).bias(false));
    };
    conv1 = register_module("conv1", conv(1, 16));
    bn1 = register_module("bn1", BatchNorm2d(16));
    conv2 = register_module("conv2", conv(16, 32));
    bn2 = register_module("bn2", BatchNorm2d(32));
    conv3 = register_module("conv3", conv(32, 32));
    bn3 = register_module("bn3", BatchNorm2d(32));
    fc = register_module("fc", Linear(32, static_cast<int64_t>(kSoundNames.size())));
  }

  rush::Tensor forward(const rush::Tensor& spectrograms) {               // (N, 32, 65)
    rush::Tensor x = rush::relu(bn1(conv1(spectrograms.unsqueeze(1))));  // (N, 16, 16, 33)
    x = rush::relu(bn2(conv2(x)));                                       // (N, 32, 8, 17)
    x = rush::relu(bn3(conv3(x)));                                       // (N, 32, 4, 9)
    return fc(x.mean({2, 3}));                                           // (N, kinds)
  }
};
RUSH_MODULE(SoundNet);

/// Trains on new sounds at every step.
class SoundClassifier {
 public:
  /// Random numbers are the device's default generator's.
  SoundClassifier(rush::Device device, double learning_rate, int64_t steps);

  /// A step on `count` sounds of each kind; the loss before it, on the device, which has not been waited for.
  rush::Tensor step(int64_t count);
  /// Of the next step.
  double learning_rate() const { return schedule_.get_last_lr()[0]; }
  /// What it takes `count` new sounds of each kind for: (kinds, kinds), the share of the sounds of a row's kind that
  /// were taken for a column's.
  rush::Tensor confusion(int64_t count);

  const MelSpectrogram& spectrogram() const { return spectrogram_; }

 private:
  rush::Device device_;
  MelSpectrogram spectrogram_;
  SoundNet net_;
  rush::optim::AdamW optimizer_;
  rush::optim::OneCycleLR schedule_;
};

}  // namespace examples
