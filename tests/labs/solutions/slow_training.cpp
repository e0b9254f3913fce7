// Learns to tell ten kinds of noisy images apart: the program of docs/slow_training.md without its eight flaws.
#include <rushlight.h>

#include <cstdio>

using rush::Tensor;

namespace {

constexpr int64_t kImages = 2048, kTestImages = 1024, kKinds = 10, kSide = 28, kBatch = 64, kEpochs = 4;

struct Images {
  Tensor pixels;  // (N, side, side), uint8
  Tensor kinds;   // (N)
};

// Images of faint patterns beneath noise.
Images draw(int64_t count, const Tensor& patterns) {
  const Tensor kinds = rush::randint(kKinds, {count}, rush::kLong);
  const Tensor pixels = rush::randn({count, kSide, kSide}).mul_(40).add_(128);
  pixels.add_(patterns.index_select(0, kinds), 8);
  return {pixels.clamp_(0, 255).to(rush::kByte), kinds};
}

Tensor rows_of(const Tensor& pixels) {
  return pixels.flatten(1).to(rush::kFloat).sub_(128).div_(64);
}  // (N, side * side)

struct Net : rush::nn::Module {
  Net() {
    hidden = register_module("hidden", rush::nn::Linear(kSide * kSide, 512));
    out = register_module("out", rush::nn::Linear(512, kKinds));
  }
  Tensor forward(const Tensor& x) { return out->forward(hidden->forward(x).relu()); }  // (N, side * side) -> (N, kinds)
  rush::nn::Linear hidden{nullptr}, out{nullptr};
};

}  // namespace

int main() {
  rush::manual_seed(1);
  const Tensor patterns = rush::randn({kKinds, kSide, kSide});
  const Images images = draw(kImages, patterns), test_images = draw(kTestImages, patterns);
  const Tensor rows = rows_of(images.pixels), test_rows = rows_of(test_images.pixels);
  Net net;
  rush::optim::Adam optimizer(net.parameters(), rush::optim::AdamOptions(1e-4));

  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const Tensor order = rush::randperm(kImages);
    Tensor sum = rush::zeros({}), correct = rush::zeros({}, rush::kLong);
    for (int64_t first = 0; first < kImages; first += kBatch) {
      const Tensor chosen = order.slice(0, first, first + kBatch);
      const Tensor logits = net.forward(rows.index_select(0, chosen));
      const Tensor kinds = images.kinds.index_select(0, chosen);
      const Tensor loss = rush::nn::functional::cross_entropy(logits, kinds);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      sum += loss.detach();
      correct += logits.argmax(1).eq(kinds).sum();
    }
    const rush::NoGradGuard no_grad;
    const Tensor logits = net.forward(test_rows);
    const Tensor test_loss = rush::nn::functional::cross_entropy(logits, test_images.kinds);
    const Tensor test_correct = logits.argmax(1).eq(test_images.kinds).sum();
    std::printf("epoch %d  loss %.6f  accuracy %.4f  test loss %.6f  test accuracy %.4f\n", static_cast<int>(epoch),
                sum.item<double>() * kBatch / kImages, correct.item<double>() / kImages, test_loss.item<double>(),
                test_correct.item<double>() / kTestImages);
  }
}
