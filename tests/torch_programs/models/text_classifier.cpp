// Texts of different lengths, padded and packed, through an embedding and a bidirectional LSTM.
#include <torch/torch.h>

#include <iostream>
#include <map>

namespace rnn_utils = torch::nn::utils::rnn;

struct SentimentRNN : torch::nn::Module {
  SentimentRNN(long vocab_size, long embedding_dim, long hidden_dim, long output_dim, long n_layers, bool bidirectional,
               double dropout, long pad_idx)
      : embedding(torch::nn::EmbeddingOptions(vocab_size, embedding_dim).padding_idx(pad_idx)),
        rnn(torch::nn::LSTMOptions(embedding_dim, hidden_dim)
                .num_layers(n_layers)
                .bidirectional(bidirectional)
                .dropout(dropout)),
        fc(hidden_dim * 2, output_dim),
        dropout(torch::nn::DropoutOptions().p(dropout)) {
    register_module("embedding", embedding);
    register_module("rnn", rnn);
    register_module("fc", fc);
    register_module("dropout", this->dropout);
  }

  torch::Tensor forward(torch::Tensor text, at::Tensor length) {
    auto embedded = dropout(embedding(text));
    auto packed_embedded = rnn_utils::pack_padded_sequence(embedded, length, /*batch_first=*/false, false);
    auto packed = rnn->forward_with_packed_input(packed_embedded);
    auto hidden = std::get<0>(std::get<1>(packed));
    auto output = std::get<0>(rnn_utils::pad_packed_sequence(std::get<0>(packed)));
    last_sizes = output.sizes().vec();
    hidden = dropout(
        torch::cat({hidden.index({-2, torch::indexing::Ellipsis}), hidden.index({-1, torch::indexing::Ellipsis})}, 1));
    return fc(hidden);
  }

  torch::nn::Embedding embedding;
  torch::nn::LSTM rnn;
  torch::nn::Linear fc;
  torch::nn::Dropout dropout;
  std::vector<int64_t> last_sizes;
};

static std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  std::string word;
  while (in >> word) words.push_back(word);
  return words;
}

int main() {
  const std::vector<std::pair<std::string, float>> corpus = {
      {"a moving and funny film", 1}, {"dull", 0},
      {"funny and warm", 1},          {"a dull and empty story", 0},
      {"warm moving story", 1},       {"an empty film without any point", 0}};
  std::map<std::string, int64_t> vocab = {{"<pad>", 0}, {"<unk>", 1}};
  for (const auto& example : corpus) {
    for (const auto& word : split(example.first)) vocab.emplace(word, static_cast<int64_t>(vocab.size()));
  }
  std::vector<torch::Tensor> sequences;
  std::vector<int64_t> lengths;
  std::vector<float> labels;
  for (const auto& example : corpus) {
    std::vector<int64_t> ids;
    for (const auto& word : split(example.first)) ids.push_back(vocab.at(word));
    sequences.push_back(torch::tensor(ids));
    lengths.push_back(static_cast<int64_t>(ids.size()));
    labels.push_back(example.second);
  }
  auto text = rnn_utils::pad_sequence(sequences, /*batch_first=*/false, 0);
  auto length = torch::tensor(lengths, torch::kInt64);
  auto label = torch::tensor(labels);
  std::cout << text << "\n" << length.t() << "\n" << label << "\n";

  torch::manual_seed(3);
  auto model = std::make_shared<SentimentRNN>(static_cast<long>(vocab.size()), 6, 5, 1, 2, true, 0.2, 0);
  std::cout << *model << "\n";
  std::cout << model->embedding->weight.index({0}).abs().sum().item<float>() << "\n";
  torch::optim::Adam optimizer(model->parameters(), 0.02);
  torch::nn::BCEWithLogitsLoss criterion;
  for (int epoch = 0; epoch < 6; ++epoch) {
    model->train();
    optimizer.zero_grad();
    auto predictions = model->forward(text, length).squeeze(1);
    auto loss = criterion(predictions, label);
    loss.backward();
    optimizer.step();
    auto rounded = torch::round(torch::sigmoid(predictions));
    std::printf("epoch %d loss %.3f\n", epoch, loss.item<double>());
  }
  std::cout << model->last_sizes << "\n";
  std::cout << model->embedding->weight.grad()[0].abs().sum().item<float>() << "\n";

  torch::NoGradGuard guard;
  model->eval();
  auto alone = model->forward(sequences[2].unsqueeze(1), torch::tensor({3}));
  auto batch = model->forward(text, length)[2];
  std::cout << (alone - batch).abs().max().lt(1e-5).item<bool>() << "\n";

  auto packed = rnn_utils::pack_sequence({torch::arange(3), torch::arange(10, 12), torch::arange(20, 21)});
  std::cout << packed.data() << packed.batch_sizes() << packed.sorted_indices().defined() << packed.is_pinned() << "\n";
  auto unsorted = rnn_utils::pack_sequence({torch::arange(1), torch::arange(10, 13), torch::arange(20, 22)}, false);
  std::cout << unsorted.data() << unsorted.sorted_indices() << unsorted.unsorted_indices() << "\n";
  auto back = rnn_utils::pad_packed_sequence(unsorted, true, -1, 4);
  std::cout << std::get<0>(back) << std::get<1>(back) << "\n";
  try {
    rnn_utils::pack_padded_sequence(torch::zeros({3, 2, 1}), torch::tensor({1, 3}));
  } catch (const c10::Error& e) {
    std::cout << (std::string(e.what()).find("decreasing order") != std::string::npos) << "\n";
  }
  return 0;
}
