// Recurrent and attending models of a sequence that repeats itself.
#include "show.h"

struct PredictorImpl : torch::nn::Module {
  PredictorImpl(int64_t vocabulary, int64_t width)
      : embedding(register_module("embedding", torch::nn::Embedding(vocabulary, width))),
        lstm(register_module("lstm",
                             torch::nn::LSTM(torch::nn::LSTMOptions(width, width).num_layers(2).batch_first(true)))),
        attention(register_module(
            "attention", torch::nn::MultiheadAttention(torch::nn::MultiheadAttentionOptions(width, 2).dropout(0.0)))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        head(register_module("head", torch::nn::Linear(width, vocabulary))) {}

  torch::Tensor forward(const torch::Tensor& tokens) {  // (N, T) -> (N, T, vocabulary)
    torch::Tensor x, state;
    x = std::get<0>(lstm->forward(embedding->forward(tokens)));
    const torch::Tensor by_time = x.transpose(0, 1);  // (T, N, width)
    const int64_t length = tokens.size(1);
    const torch::Tensor mask = torch::full({length, length}, -INFINITY, torch::kFloat64).triu(1);
    const auto attended = attention->forward(by_time, by_time, by_time, /*key_padding_mask=*/{},
                                             /*need_weights=*/true, /*attn_mask=*/mask);
    weights = std::get<1>(attended);
    return head->forward(norm->forward(x + std::get<0>(attended).transpose(0, 1)));
  }

  torch::nn::Embedding embedding;
  torch::nn::LSTM lstm;
  torch::nn::MultiheadAttention attention;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
  torch::Tensor weights;
};
TORCH_MODULE(Predictor);

int main() {
  const int64_t vocabulary = 5, width = 8, length = 6;
  Predictor model(vocabulary, width);
  fill_parameters(*model, 0.4);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.02).weight_decay(0.01));
  const torch::Tensor sequence = torch::arange(3 * (length + 1), torch::kInt64).pow(2).remainder(vocabulary);
  const torch::Tensor rows = sequence.view({3, length + 1});
  const torch::Tensor input = rows.slice(1, 0, length), target = rows.slice(1, 1, length + 1);
  for (int step = 1; step <= 10; ++step) {
    optimizer.zero_grad();
    const torch::Tensor logits = model->forward(input);
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(logits.reshape({-1, vocabulary}), target.reshape({-1}));
    loss.backward();
    const double norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    std::printf("step %d", step);
    print_number(loss.item<double>());
    print_number(norm);
    std::printf("\n");
  }
  torch::NoGradGuard no_grad;
  model->eval();
  show("prediction", model->forward(input).argmax(-1));
  show("attention", model->weights[0]);

  torch::nn::GRU gru(torch::nn::GRUOptions(3, 4).bidirectional(true));
  fill_parameters(*gru, 0.5);
  const auto result = gru->forward(wave({4, 2, 3}, 0.8));
  show("GRU output", std::get<0>(result)[3]);
  show("GRU state", std::get<1>(result));
  return 0;
}
