// Recurrent networks (RNN, LSTM, GRU) and their cells.
#pragma once
#include <optional>
#include <tuple>

#include "nn/cloneable.h"
#include "nn/options/rnn.h"
#include "nn/packed_sequence.h"

namespace rush::nn {

namespace detail {

// What goes from step to step. Only the LSTM has c.
struct RecurrentState {
  Tensor h, c;
};

// What RNN, LSTM and GRU share. Parameters of layer k: weight_ih_lk (gates * H, in), weight_hh_lk (gates * H, H or the
// projection's size), bias_ih_lk and bias_hh_lk (gates * H), weight_hr_lk (projection's size, H) if there is one, and
// the same with the suffix _reverse for the other direction, all uniform within 1 / sqrt(H) at first.
template <class Derived, class Options>
class RNNImplBase : public Cloneable<Derived> {
 public:
  using PackedSequence = utils::rnn::PackedSequence;

  explicit RNNImplBase(const Options& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  // Here for libtorch's programs: cuDNN's layout of the weights is made in each call.
  void flatten_parameters() {}
  // weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...
  std::vector<Tensor> all_weights() const { return this->parameters_.values(); }

  Options options;
  // The same for all kinds, as the constructor was given it; forward reads `options`.
  RNNOptionsBase options_base;

 protected:
  // Padded input, as forward documents it.
  std::tuple<Tensor, RecurrentState> run(const Tensor& input, const std::optional<RecurrentState>& hx);
  std::tuple<PackedSequence, RecurrentState> run(const PackedSequence& input, const std::optional<RecurrentState>& hx);
};

}  // namespace detail

/// Elman's network, torch.nn.RNN: rush::rnn_tanh or rush::rnn_relu (core/ops/nn/recurrent.h) with this module's
/// parameters.
class RNNImpl : public detail::RNNImplBase<RNNImpl, RNNOptions> {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options) : RNNImplBase(options) {}

  /// (T, N, in), or (N, T, in) with batch_first, or (T, in) -> the last layer's h at every step (T, N, directions * H),
  /// and h after the last step (layers * directions, N, H). Without hx it starts at zero. Throws ValueError on other
  /// shapes.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, std::optional<Tensor> hx = std::nullopt);
  /// The same with sequences of different lengths; h is each one's at its own end.
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& input,
                                                               std::optional<Tensor> hx = std::nullopt);
};
RUSH_MODULE(RNN);

/// torch.nn.LSTM: rush::lstm (core/ops/nn/recurrent.h) with this module's parameters.
class LSTMImpl : public detail::RNNImplBase<LSTMImpl, LSTMOptions> {
 public:
  using State = std::tuple<Tensor, Tensor>;  // h and c, each (layers * directions, N, H)

  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options) : RNNImplBase(options) {}

  /// As RNN's, with h and c.
  std::tuple<Tensor, State> forward(const Tensor& input, std::optional<State> hx = std::nullopt);
  std::tuple<PackedSequence, State> forward_with_packed_input(const PackedSequence& input,
                                                              std::optional<State> hx = std::nullopt);
};
RUSH_MODULE(LSTM);

/// torch.nn.GRU: rush::gru (core/ops/nn/recurrent.h) with this module's parameters.
class GRUImpl : public detail::RNNImplBase<GRUImpl, GRUOptions> {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options) : RNNImplBase(options) {}

  /// As RNN's.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, std::optional<Tensor> hx = std::nullopt);
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& input,
                                                               std::optional<Tensor> hx = std::nullopt);
};
RUSH_MODULE(GRU);

namespace detail {

// What the cells, one step each, share. Parameters weight_ih, weight_hh, bias_ih, bias_hh.
template <class Derived, class Options>
class RNNCellImplBase : public Cloneable<Derived> {
 public:
  explicit RNNCellImplBase(const Options& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  Options options;
  RNNCellOptionsBase options_base;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentState step(const Tensor& input, const std::optional<RecurrentState>& hx) const;
};

}  // namespace detail

/// torch.nn.RNNCell, LSTMCell, GRUCell: (N, in) and the state (N, H) -> the next state; also without N. Without hx it
/// is zero. Throws ValueError on other shapes.
class RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl, RNNCellOptions> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size) : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options) : RNNCellImplBase(options) {}
  Tensor forward(const Tensor& input, std::optional<Tensor> hx = std::nullopt);
};
RUSH_MODULE(RNNCell);

/// As RNNCellImpl; the state is h and c, (N, H) each.
class LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl, LSTMCellOptions> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size) : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options) : RNNCellImplBase(options) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx = std::nullopt);
};
RUSH_MODULE(LSTMCell);

/// As RNNCellImpl.
class GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl, GRUCellOptions> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size) : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options) : RNNCellImplBase(options) {}
  Tensor forward(const Tensor& input, std::optional<Tensor> hx = std::nullopt);
};
RUSH_MODULE(GRUCell);

}  // namespace rush::nn
