// Sequence to sequence: a GRU encoder, a decoder that attends to its outputs, teacher forcing, and greedy decoding.
#include <torch/torch.h>

#include <iostream>
#include <string>

struct EncoderRNNImpl : torch::nn::Module {
  EncoderRNNImpl(int64_t input_size, int64_t hidden_size)
      : embedding(register_module("embedding", torch::nn::Embedding(input_size, hidden_size))),
        gru(register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(hidden_size, hidden_size).batch_first(true)))) {
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& input) {
    return gru->forward(embedding->forward(input));
  }
  torch::nn::Embedding embedding;
  torch::nn::GRU gru;
};
TORCH_MODULE(EncoderRNN);

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(int64_t hidden_size)
      : Wa(register_module("Wa", torch::nn::Linear(hidden_size, hidden_size))),
        Ua(register_module("Ua", torch::nn::Linear(hidden_size, hidden_size))),
        Va(register_module("Va", torch::nn::Linear(hidden_size, 1))) {}
  // query (N, 1, H), keys (N, T, H) -> context (N, 1, H), weights (N, 1, T)
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor query, torch::Tensor keys) {
    auto scores = Va->forward(torch::tanh(Wa->forward(query) + Ua->forward(keys)));
    scores = scores.squeeze(2).unsqueeze(1);
    auto weights = torch::nn::functional::softmax(scores, -1);
    return {torch::bmm(weights, keys), weights};
  }
  torch::nn::Linear Wa, Ua, Va;
};
TORCH_MODULE(Attention);

struct DecoderRNNImpl : torch::nn::Module {
  DecoderRNNImpl(int64_t hidden_size, int64_t output_size)
      : embedding(output_size, hidden_size),
        attention(hidden_size),
        cell(2 * hidden_size, hidden_size),
        out(hidden_size, output_size) {
    register_module("embedding", embedding);
    register_module("attention", attention);
    register_module("cell", cell);
    register_module("out", out);
  }
  std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> step(torch::Tensor token, torch::Tensor hidden,
                                                               torch::Tensor keys) {
    auto [context, weights] = attention->forward(hidden.unsqueeze(1), keys);
    hidden = cell(torch::cat({embedding(token), context.squeeze(1)}, 1), hidden);
    return std::make_tuple(torch::log_softmax(out(hidden), -1), hidden, weights);
  }
  torch::nn::Embedding embedding;
  Attention attention;
  torch::nn::GRUCell cell;
  torch::nn::Linear out;
};
TORCH_MODULE(DecoderRNN);

static torch::Tensor encode(const std::string& text) {
  auto ids = torch::empty({1, static_cast<int64_t>(text.size())}, torch::kLong);
  for (size_t i = 0; i < text.size(); ++i) ids[0][static_cast<int64_t>(i)] = text[i] == ' ' ? 0 : text[i] - 'a' + 1;
  return ids;
}

int main() {
  torch::manual_seed(2024);
  const int64_t vocabulary = 27, hidden = 10;
  EncoderRNN encoder(vocabulary, hidden);
  DecoderRNN decoder(hidden, vocabulary);
  std::cout << encoder << std::endl << decoder << std::endl;
  torch::optim::RMSprop encoder_optimizer(encoder->parameters(),
                                          torch::optim::RMSpropOptions(0.01).alpha(0.9).centered(true));
  torch::optim::Adagrad decoder_optimizer(decoder->parameters(), torch::optim::AdagradOptions(0.05).lr_decay(1e-3));
  torch::nn::NLLLoss criterion;

  const auto source = torch::cat({encode("abc"), encode("bca"), encode("cab")}), target = source.flip(1);
  for (int epoch = 1; epoch <= 6; ++epoch) {
    encoder_optimizer.zero_grad();
    decoder_optimizer.zero_grad();
    auto [outputs, state] = encoder->forward(source);
    auto token = torch::zeros({3}, torch::kLong);
    auto h = state[0];
    torch::Tensor loss = torch::zeros({});
    const bool teacher_forcing = torch::rand({1}).item<float>() < 0.5f;
    for (int64_t t = 0; t < target.size(1); ++t) {
      torch::Tensor log_probs, weights;
      std::tie(log_probs, h, weights) = decoder->step(token, h, outputs);
      loss += criterion(log_probs, target.select(1, t));
      token = teacher_forcing ? target.select(1, t) : std::get<1>(log_probs.topk(1)).squeeze(-1).detach();
    }
    loss.backward();
    torch::nn::utils::clip_grad_value_(decoder->parameters(), 0.5);
    encoder_optimizer.step();
    decoder_optimizer.step();
    std::printf("epoch %d %s loss %.3f\n", epoch, teacher_forcing ? "forced" : "free", loss.item<double>() / 3);
  }

  torch::NoGradGuard no_grad;
  auto [outputs, state] = encoder->forward(encode("abc"));
  auto h = state.squeeze(0);
  auto token = torch::zeros({1}, torch::kLong);
  std::string written;
  for (int t = 0; t < 3; ++t) {
    auto [log_probs, next, weights] = decoder->step(token, h, outputs);
    h = next;
    token = log_probs.argmax(1);
    written += static_cast<char>('a' + token.item<int64_t>() - 1);
    std::printf("%.3f %d\n", weights.sum().item<float>(), static_cast<int>(weights.size(2)));
  }
  std::cout << written << "\n";
  return 0;
}
