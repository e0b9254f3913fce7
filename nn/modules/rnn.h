// LSTM and its cell.
#pragma once
#include <optional>
#include <tuple>

#include "nn/cloneable.h"
#include "nn/options/rnn.h"

namespace rush::nn {

// Hochreiter and Schmidhuber, "Long short-term memory" (1997), as torch.nn.LSTM computes it:
//   i, f, g, o = the quarters of W_ih x + b_ih + W_hh h + b_hh
//   c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')
// Parameters of layer k: weight_ih_lk (4H, in), weight_hh_lk (4H, H), bias_ih_lk and bias_hh_lk (4H), and the same
// with the suffix _reverse for the other direction, all uniform within 1 / sqrt(H) at first.
class LSTMImpl : public Cloneable<LSTMImpl> {
 public:
  using State = std::tuple<Tensor, Tensor>;  // h and c, each (layers * directions, N, H)

  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  // (T, N, in), or (N, T, in) with batch_first, or (T, in) -> the last layer's h at every step (T, N, directions * H),
  // and the state after the last step. Without a state it starts at zero.
  std::tuple<Tensor, State> forward(const Tensor& input, std::optional<State> hx = std::nullopt);
  // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...
  std::vector<Tensor> all_weights() const { return parameters_.values(); }

  LSTMOptions options;

 private:
  struct Weights {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  Weights weights(int64_t layer, bool reverse) const;
  State initial_state(const Tensor& input) const;
  // One layer in one direction over (T, N, in): the outputs (T, N, H) and the last h and c (N, H).
  std::tuple<Tensor, Tensor, Tensor> run_layer(const Tensor& input, const Weights& w, Tensor h, Tensor c,
                                               bool reverse) const;
};
RUSH_MODULE(LSTM);

// One step: (N, in), h and c (N, H) -> h' and c'; also without N. Parameters weight_ih, weight_hh, bias_ih, bias_hh.
// torch.nn.LSTMCell.
class LSTMCellImpl : public Cloneable<LSTMCellImpl> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size) : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx = std::nullopt);

  LSTMCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
RUSH_MODULE(LSTMCell);

}  // namespace rush::nn
