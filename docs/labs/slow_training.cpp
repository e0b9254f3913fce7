// Learns to tell ten kinds of noisy images apart. What it learns is right; eight flaws make it slow:
// docs/slow_training.md.
#include <rushlight.h>

#include <cmath>
#include <cstdio>
#include <vector>

using rush::Tensor;

namespace {

constexpr int64_t kImages = 2048, kTestImages = 1024, kKinds = 10, kSide = 28, kBatch = 64, kEpochs = 4;
constexpr int64_t kTogether = 8;  // images of a batch that are computed at a time

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

Tensor rows_of(const Tensor& pixels) { return (pixels.flatten(1).to(rush::kDouble) - 128) / 64; }  // (N, side * side)

struct Net : rush::nn::Module {
  Net() {
    hidden = register_module("hidden", rush::nn::Linear(kSide * kSide, 512));
    out = register_module("out", rush::nn::Linear(512, kKinds));
  }
  Tensor forward(const Tensor& x) { return out->forward(hidden->forward(x).relu()); }  // (N, side * side) -> (N, kinds)
  rush::nn::Linear hidden{nullptr}, out{nullptr};
};

// Adam (Kingma and Ba, 2014), with the defaults of the paper.
class Adam {
 public:
  Adam(std::vector<Tensor> parameters, double lr) : parameters_(std::move(parameters)), lr_(lr) {
    for (const Tensor& parameter : parameters_) {
      means_.push_back(rush::zeros_like(parameter));
      squares_.push_back(rush::zeros_like(parameter));
    }
  }
  void zero_grad() {
    for (const Tensor& parameter : parameters_) {
      if (parameter.grad().defined()) parameter.grad().zero_();
    }
  }
  void step() {
    const rush::NoGradGuard no_grad;
    ++steps_;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor& gradient = parameters_[i].grad();
      means_[i] = means_[i] * 0.9 + gradient * 0.1;
      squares_[i] = squares_[i] * 0.999 + gradient * gradient * 0.001;
      const Tensor mean = means_[i] / (1 - std::pow(0.9, steps_));
      const Tensor square = squares_[i] / (1 - std::pow(0.999, steps_));
      parameters_[i].sub_(mean / (square.sqrt() + 1e-8) * lr_);
    }
  }

 private:
  std::vector<Tensor> parameters_, means_, squares_;
  double lr_;
  int steps_ = 0;
};

// The sum of -log p(kind) of each row.
Tensor surprise(const Tensor& logits, const Tensor& kinds) {
  Tensor sum = rush::zeros({}, rush::kDouble);
  for (int64_t i = 0; i < logits.size(0); ++i) {
    sum = sum - logits[i].log_softmax(0)[kinds[i].item<int64_t>()];
  }
  return sum;
}

}  // namespace

int main() {
  const rush::autograd::DetectAnomalyGuard find_nan;
  rush::manual_seed(1);
  const Tensor patterns = rush::randn({kKinds, kSide, kSide});
  const Images images = draw(kImages, patterns), test_images = draw(kTestImages, patterns);
  Net net;
  net.to(rush::kDouble);
  Adam optimizer(net.parameters(), 1e-4);

  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const Tensor order = rush::randperm(kImages);
    Tensor sum = rush::zeros({}, rush::kDouble);
    int64_t correct = 0;
    for (int64_t first = 0; first < kImages; first += kBatch) {
      const Tensor rows = rows_of(images.pixels);
      optimizer.zero_grad();
      for (int64_t i = first; i < first + kBatch; i += kTogether) {
        const Tensor chosen = order.slice(0, i, i + kTogether);
        const Tensor logits = net.forward(rows.index_select(0, chosen));
        const Tensor loss = surprise(logits, images.kinds.index_select(0, chosen)) / kBatch;
        loss.backward({}, /*retain_graph=*/true);
        sum = sum + loss;
        const Tensor guesses = net.forward(rows.index_select(0, chosen)).argmax(1);
        correct += guesses.eq(images.kinds.index_select(0, chosen)).sum().item<int64_t>();
      }
      optimizer.step();
    }
    const rush::NoGradGuard no_grad;
    const Tensor logits = net.forward(rows_of(test_images.pixels));
    const Tensor test_loss = surprise(logits, test_images.kinds) / kTestImages;
    const Tensor test_correct = logits.argmax(1).eq(test_images.kinds).sum();
    std::printf("epoch %d  loss %.6f  accuracy %.4f  test loss %.6f  test accuracy %.4f\n", static_cast<int>(epoch),
                sum.item<double>() * kBatch / kImages, static_cast<double>(correct) / kImages, test_loss.item<double>(),
                test_correct.item<double>() / kTestImages);
  }
}
