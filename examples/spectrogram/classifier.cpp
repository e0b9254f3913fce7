#include "examples/spectrogram/classifier.h"

namespace examples {

using rush::Tensor;

SoundClassifier::SoundClassifier(rush::Device device, double learning_rate, int64_t steps)
    : device_(device),
      spectrogram_(kSampleRate, device),
      optimizer_(net_->parameters(), rush::optim::AdamWOptions(learning_rate)),
      schedule_(optimizer_, learning_rate, steps) {
  net_->to(device);
}

Tensor SoundClassifier::step(int64_t count) {
  const Sounds sounds = make_sounds(count, device_);
  const Tensor loss = rush::nn::functional::cross_entropy(net_(spectrogram_(sounds.signals)), sounds.labels);
  optimizer_.zero_grad();
  loss.backward();
  optimizer_.step();
  schedule_.step();
  return loss.detach();
}

Tensor SoundClassifier::confusion(int64_t count) {
  const rush::NoGradGuard no_grad;
  net_->eval();
  const Sounds sounds = make_sounds(count, device_);
  const auto kinds = static_cast<int64_t>(kSoundNames.size());
  const Tensor taken_for = net_(spectrogram_(sounds.signals)).argmax(1);
  net_->train();
  const Tensor counts = (sounds.labels * kinds + taken_for).cpu().bincount({}, kinds * kinds);
  return counts.view({kinds, kinds}).to(rush::kFloat32) / static_cast<double>(count);
}

}  // namespace examples
