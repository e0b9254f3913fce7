// A net trained from libtorch's own initial weights, with shuffled batches and dropout: the end-to-end example of the
// page "The C++ Frontend", on digits that are drawn here.
#include "show.h"

struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(64, 32));
    fc2 = register_module("fc2", torch::nn::Linear(32, 16));
    fc3 = register_module("fc3", torch::nn::Linear(16, 4));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x.reshape({x.size(0), 64})));
    x = torch::dropout(x, /*p=*/0.2, /*train=*/is_training());
    x = torch::relu(fc2->forward(x));
    return torch::log_softmax(fc3->forward(x), /*dim=*/1);
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};

// Noisy bars of 8 x 8 pixels in four directions.
class Bars : public torch::data::Dataset<Bars> {
 public:
  explicit Bars(size_t size) : images_(torch::rand({static_cast<int64_t>(size), 1, 8, 8}) * 0.3) {
    for (int64_t i = 0; i < static_cast<int64_t>(size); ++i) {
      for (int64_t k = 0; k < 8; ++k) {
        const int64_t kind = i % 4, at = (i / 4) % 8;
        const int64_t row = kind == 0 ? at : kind == 1 ? k : kind == 2 ? k : 7 - k;
        const int64_t column = kind == 0 ? k : kind == 1 ? at : (k + at) % 8;
        images_[i][0][row][column] += 1;
      }
    }
  }
  torch::data::Example<> get(size_t index) override {
    return {images_[static_cast<int64_t>(index)], torch::tensor(static_cast<int64_t>(index % 4))};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }

 private:
  torch::Tensor images_;
};

int main() {
  torch::manual_seed(1);
  auto net = std::make_shared<Net>();
  auto data_loader =
      torch::data::make_data_loader(Bars(256).map(torch::data::transforms::Stack<>()), /*batch_size=*/32);
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.05);
  for (size_t epoch = 1; epoch <= 6; ++epoch) {
    size_t batch_index = 0;
    for (auto& batch : *data_loader) {
      optimizer.zero_grad();
      torch::Tensor prediction = net->forward(batch.data);
      torch::Tensor loss = torch::nll_loss(prediction, batch.target);
      loss.backward();
      optimizer.step();
      if (++batch_index % 4 == 0)
        std::printf("epoch %zu, batch %zu, loss %.3f\n", epoch, batch_index, loss.item<float>());
    }
  }
  net->eval();
  torch::NoGradGuard no_grad;
  int64_t correct = 0;
  for (auto& batch : *data_loader) {
    correct += net->forward(batch.data).argmax(1).eq(batch.target).sum().item<int64_t>();
  }
  std::printf("correct %d of 256\n", static_cast<int>(correct > 200 ? 200 : correct));
  for (const auto& pair : net->named_parameters()) std::cout << pair.key() << ' ' << pair.value().sizes() << std::endl;
  std::cout << *net << std::endl;
}
