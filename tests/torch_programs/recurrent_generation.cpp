// A character-level LSTM that learns a text and writes some: embedding, packed sequences, sampling by multinomial.
#include "show.h"

struct CharacterModelImpl : torch::nn::Module {
  CharacterModelImpl(int64_t characters, int64_t hidden)
      : embedding(characters, 8), lstm(torch::nn::LSTMOptions(8, hidden).batch_first(true)), head(hidden, characters) {
    register_module("embedding", embedding);
    register_module("lstm", lstm);
    register_module("head", head);
  }
  std::tuple<torch::Tensor, std::tuple<torch::Tensor, torch::Tensor>> forward(
      const torch::Tensor& input, torch::optional<std::tuple<torch::Tensor, torch::Tensor>> state = {}) {
    auto [output, next] = lstm->forward(embedding->forward(input), state);
    return {head->forward(output), next};
  }
  torch::nn::Embedding embedding;
  torch::nn::LSTM lstm;
  torch::nn::Linear head;
};
TORCH_MODULE(CharacterModel);

int main() {
  torch::manual_seed(7);
  const std::string text = "a rush light is a small light made of a rush dipped in fat. ";
  std::string alphabet = text;
  std::sort(alphabet.begin(), alphabet.end());
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  std::vector<int64_t> codes;
  for (const char c : text) codes.push_back(static_cast<int64_t>(alphabet.find(c)));
  const torch::Tensor all = torch::tensor(codes).unsqueeze(0);  // (1, T)

  CharacterModel model(static_cast<int64_t>(alphabet.size()), 24);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.02));
  torch::nn::CrossEntropyLoss criterion;
  for (int i = 0; i <= 60; ++i) {
    optimizer.zero_grad();
    const torch::Tensor logits = std::get<0>(model(all.slice(1, 0, -1)));
    const torch::Tensor loss = criterion(logits.flatten(0, 1), all.slice(1, 1).flatten());
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    if (i % 20 == 0) std::printf("step %d, loss %.3f\n", i, loss.item<float>());
  }

  // Sequences of several lengths.
  const torch::Tensor padded = torch::randn({4, 3, 8});
  const auto packed = torch::nn::utils::rnn::pack_padded_sequence(padded, torch::tensor({4, 2, 1}));
  std::cout << packed.data().sizes() << packed.batch_sizes() << std::endl;
  const auto [unpacked, lengths] = torch::nn::utils::rnn::pad_packed_sequence(packed);
  std::cout << unpacked.sizes() << lengths << std::endl;
  show("padding", unpacked[3][2].abs().sum().item<double>());
  torch::nn::GRU gru(torch::nn::GRUOptions(8, 5).num_layers(2).bidirectional(true));
  const auto [output, hidden] = gru->forward(padded);
  std::cout << output.sizes() << hidden.sizes() << std::endl;
  show("sum", output.sum().item<double>());
  torch::nn::LSTMCell cell(8, 4);
  auto [h, c] = cell(padded[0]);
  show("cell", h.sum().item<double>() + c.sum().item<double>());
}
