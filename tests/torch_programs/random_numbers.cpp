// Random numbers of a seed: tensors, generators, initial weights, dropout and the order of a loader's examples.
#include "show.h"

static void show_parameters(const char* name, const torch::nn::Module& module) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) {
    const auto wide = parameter.to(torch::kFloat64);
    sum += wide.sum().item<double>();
    squares += wide.square().sum().item<double>();
    count += parameter.numel();
  }
  std::printf("%s %lld:", name, static_cast<long long>(count));
  print_number(sum);
  print_number(squares);
  std::printf("\n");
}

int main() {
  torch::manual_seed(0);
  show("rand", torch::rand({2, 3}));
  show("randn of few", torch::randn({5}));
  show("randn of many", torch::randn({4, 5}));
  show("double", torch::randn({3, 6}, torch::kFloat64));
  show("randint", torch::randint(-5, 100, {8}));
  show("randperm", torch::randperm(10));
  show("normal", torch::normal(1, 2, {3}));
  show("bernoulli", torch::bernoulli(torch::full({8}, 0.4)));
  show("multinomial", torch::multinomial(torch::tensor({0.1, 0.6, 0.3}), 5, true));
  show("no replacement", torch::multinomial(torch::tensor({0.1, 0.6, 0.3, 0.2}), 3));
  show("exponential", torch::empty({4}).exponential_(2));
  show("cauchy", torch::empty({3}).cauchy_());
  show("log_normal", torch::empty({3}).log_normal_());
  show("geometric", torch::empty({5}).geometric_(0.3));
  show("uniform", torch::empty({4}).uniform_(-1, 1));
  show("random", torch::empty({4}, torch::kInt32).random_());
  show("rand_like", torch::rand_like(torch::zeros({3}, torch::kFloat64)));

  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  show("generator", torch::rand({3}, generator));
  auto copy = generator.clone();
  show("its clone", torch::rand({2}, copy));
  show("itself", torch::rand({2}, generator));
  generator.set_current_seed(7);
  show("seeded again", torch::rand({3}, generator));

  torch::manual_seed(42);
  show_parameters("Linear", *torch::nn::Linear(20, 10));
  show_parameters("Conv2d", *torch::nn::Conv2d(3, 8, 3));
  show_parameters("ConvTranspose2d", *torch::nn::ConvTranspose2d(3, 8, 3));
  show_parameters("Embedding", *torch::nn::Embedding(20, 6));
  show_parameters("Bilinear", *torch::nn::Bilinear(4, 3, 2));
  show_parameters("BatchNorm2d", *torch::nn::BatchNorm2d(4));
  show_parameters("LSTM", *torch::nn::LSTM(torch::nn::LSTMOptions(5, 7).num_layers(2).bidirectional(true)));
  show_parameters("GRU", *torch::nn::GRU(5, 7));
  show_parameters("RNN", *torch::nn::RNN(5, 7));
  show_parameters("GRUCell", *torch::nn::GRUCell(5, 7));
  show_parameters("MultiheadAttention", *torch::nn::MultiheadAttention(8, 2));
  show_parameters("TransformerEncoderLayer", *torch::nn::TransformerEncoderLayer(8, 2));

  torch::manual_seed(3);
  torch::Tensor weight = torch::empty({6, 4});
  show("xavier_uniform", torch::nn::init::xavier_uniform_(weight));
  show("xavier_normal", torch::nn::init::xavier_normal_(weight, 0.5));
  show("kaiming_uniform", torch::nn::init::kaiming_uniform_(weight, 0.1));
  show("kaiming_normal", torch::nn::init::kaiming_normal_(weight));
  show("sparse", torch::nn::init::sparse_(weight, 0.25));

  torch::manual_seed(5);
  const torch::Tensor x = torch::ones({2, 4, 2});
  show("dropout", torch::nn::functional::dropout(x, torch::nn::functional::DropoutFuncOptions().p(0.4)));
  show("dropout2d", torch::nn::Dropout2d(0.5)(torch::ones({1, 4, 1, 2})));
  show("alpha dropout", torch::nn::AlphaDropout(0.3)(torch::ones({6})));
  torch::Tensor turned = torch::empty({3, 2}).t();
  show("transposed", turned.uniform_());

  torch::manual_seed(11);
  auto dataset = torch::data::datasets::TensorDataset(torch::arange(10))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(std::move(dataset), 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) show("batch", batch.data);
  }
}
