// A dataset of one's own, its transforms, and the loader with and without worker threads.
#include "show.h"

// Points of two spirals; the target is the spiral's number.
class Spirals : public torch::data::datasets::Dataset<Spirals> {
 public:
  explicit Spirals(size_t count) : count_(count) {}

  torch::data::Example<> get(size_t index) override {
    TORCH_CHECK(index < count_, "Spirals: example ", index, " of ", count_);
    const double turn = 4.0 * static_cast<double>(index / 2) / static_cast<double>(count_ / 2);
    const double angle = turn + (index % 2 == 0 ? 0 : M_PI);
    const torch::Tensor point = torch::tensor({turn * std::cos(angle), turn * std::sin(angle)}, torch::kFloat64);
    return {point, torch::tensor(static_cast<int64_t>(index % 2), torch::kInt64)};
  }
  torch::optional<size_t> size() const override { return count_; }

 private:
  size_t count_;
};

struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(2, 16));
    fc2 = register_module("fc2", torch::nn::Linear(torch::nn::LinearOptions(16, 16)));
    fc3 = register_module("fc3", torch::nn::Linear(16, 2));
  }
  torch::Tensor forward(torch::Tensor x) {  // (N, 2) -> (N, 2) log-probabilities
    x = torch::tanh(fc1->forward(x));
    x = torch::relu(fc2->forward(x));
    return torch::log_softmax(fc3->forward(x), /*dim=*/1);
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};

int main() {
  auto train_set = Spirals(60)
                       .map(torch::data::transforms::TensorLambda<>([](torch::Tensor point) { return point / 4; }))
                       .map(torch::data::transforms::Stack<>());
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      train_set, torch::data::DataLoaderOptions().batch_size(16).workers(2));

  auto net = std::make_shared<Net>();
  fill_parameters(*net, 0.5);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int epoch = 1; epoch <= 6; ++epoch) {
    double loss_sum = 0;
    int64_t seen = 0;
    for (auto& batch : *train_loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nll_loss(net->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>() * static_cast<double>(batch.data.size(0));
      seen += batch.data.size(0);
    }
    std::printf("epoch %d, %lld examples", epoch, static_cast<long long>(seen));
    print_number(loss_sum / static_cast<double>(seen));
    std::printf("\n");
  }

  net->eval();
  torch::NoGradGuard no_grad;
  int64_t correct = 0;
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(train_set, 25);
  for (const auto& batch : *test_loader) {
    correct += net->forward(batch.data).argmax(1).eq(batch.target).sum().item<int64_t>();
  }
  std::printf("correct: %lld\n", static_cast<long long>(correct));

  // In a random order each example still comes once.
  torch::manual_seed(7);
  auto shuffled = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Spirals(50), torch::data::DataLoaderOptions().batch_size(8).drop_last(false));
  double radii = 0;
  size_t batches = 0;
  for (const auto& batch : *shuffled) {
    ++batches;
    for (const auto& example : batch) radii += example.data.norm().item<double>();
  }
  std::printf("%zu batches", batches);
  print_number(radii);
  std::printf("\n");

  // Normalize takes a mean and a deviation for each channel.
  auto normalized = torch::data::datasets::TensorDataset(wave({4, 3, 2, 2}, 0.3).unbind(0))
                        .map(torch::data::transforms::Lambda<torch::data::TensorExample>(
                            [](torch::data::TensorExample example) { return example.data.to(torch::kFloat32); }));
  std::printf("%zu tensors\n", normalized.size().value());
  auto as_examples = Spirals(4).map(torch::data::transforms::Normalize<>({0.5}, {2.0}));
  show("normalized", as_examples.get_batch(std::vector<size_t>{1})[0].data);
  return 0;
}
