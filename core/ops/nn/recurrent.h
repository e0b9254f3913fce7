// Recurrent networks: RNN, GRU and LSTM over whole sequences, all layers and directions, and their cells, one step
// each.
#pragma once
#include <optional>
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

/// Over padded sequences, and over packed ones (nn::utils::rnn::PackedSequence): input or data and its batch sizes, h,
/// parameters, has_biases, num_layers, dropout, train, bidirectional, and batch_first.
using RecurrentOp =
    Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool)>;
using PackedRecurrentOp = Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, TensorList, bool,
                                                        int64_t, double, bool, bool)>;
using RecurrentCellOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                  const std::optional<Tensor>&, const std::optional<Tensor>&)>;

namespace ops {
#define RUSH_RECURRENT_OPS(name)                                                                                   \
  inline constinit RecurrentOp name{                                                                               \
      "aten::" #name                                                                                               \
      ".input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "     \
      "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",                                          \
      {Tag::AnyDevice}};                                                                                           \
  inline constinit PackedRecurrentOp name##_data{                                                                  \
      "aten::" #name                                                                                               \
      ".data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float " \
      "dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",                                              \
      {Tag::AnyDevice}};                                                                                           \
  inline constinit RecurrentCellOp name##_cell{                                                                    \
      "aten::" #name                                                                                               \
      "_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor"};
RUSH_RECURRENT_OPS(rnn_tanh)
RUSH_RECURRENT_OPS(rnn_relu)
RUSH_RECURRENT_OPS(gru)
#undef RUSH_RECURRENT_OPS
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, TensorList, TensorList, bool, int64_t, double,
                                                       bool, bool, bool)>
    lstm{
        "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
        "bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        {Tag::AnyDevice}};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, TensorList, TensorList, bool,
                                                       int64_t, double, bool, bool)>
    lstm_data{
        "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
        {Tag::AnyDevice}};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, TensorList, const Tensor&, const Tensor&,
                                               const std::optional<Tensor>&, const std::optional<Tensor>&)>
    lstm_cell{
        "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
        "(Tensor, Tensor)"};
// What a cell makes of all its gates, in one pass where the device has a kernel for it. They have no derivative.
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&)> lstm_gates{
    "rush::lstm_gates(Tensor from_input, Tensor from_hidden, Tensor c) -> (Tensor h, Tensor c)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> gru_gates{
    "rush::gru_gates(Tensor from_input, Tensor from_hidden, Tensor h) -> Tensor"};
}  // namespace ops

// What the following share. input (T, N, in), or (N, T, in) with batch_first, or `data` (sum of lengths, in) packed,
// with batch_sizes: how many sequences are running at each step, never more than at the one before. h (layers *
// directions, N, H). `params` of each layer and, in it, direction: weight_ih (gates * H, in), weight_hh (gates * H, H),
// and with has_biases bias_ih and bias_hh (gates * H). Returns the last layer's h at every step, laid out as the input
// with directions * H features, and h after the last step of each sequence. While training, each layer's output but the
// last one's is dropped out. Throws ValueError on shapes that do not fit and TypeError when the dtypes differ.
//
// On CUDA they run through cuDNN where it takes the dtype and is not switched off, and can then be differentiated once
// (core/ops/nn/cudnn_rnn.h); they give the same numbers as step by step, to rounding. On the CPU a layer in one
// direction is one operator: Note [A layer over all steps].

// The operator over padded and packed sequences, and its cell: input (N, in) or (in), hx (N, H) or (H), the shapes of
// one layer's parameters -> the next h.
#define RUSH_RECURRENT_FUNCTIONS(name)                                                                              \
  inline std::tuple<Tensor, Tensor> name(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, \
                                         int64_t num_layers, double dropout, bool train, bool bidirectional,        \
                                         bool batch_first) {                                                        \
    return ops::name(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);        \
  }                                                                                                                 \
  inline std::tuple<Tensor, Tensor> name(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,           \
                                         TensorList params, bool has_biases, int64_t num_layers, double dropout,    \
                                         bool train, bool bidirectional) {                                          \
    return ops::name##_data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);  \
  }                                                                                                                 \
  inline Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,          \
                            const std::optional<Tensor>& b_ih = std::nullopt,                                       \
                            const std::optional<Tensor>& b_hh = std::nullopt) {                                     \
    return ops::name##_cell(input, hx, w_ih, w_hh, b_ih, b_hh);                                                     \
  }
// Elman's network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or ReLU in tanh's place.
RUSH_RECURRENT_FUNCTIONS(rnn_tanh)
RUSH_RECURRENT_FUNCTIONS(rnn_relu)
// Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014), as torch.nn.GRU computes it:
//   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr),  z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
//   n = tanh(W_in x + b_in + r (W_hn h + b_hn)),  h' = (1 - z) n + z h
RUSH_RECURRENT_FUNCTIONS(gru)
#undef RUSH_RECURRENT_FUNCTIONS

/// Hochreiter and Schmidhuber, "Long short-term memory" (1997), as torch.nn.LSTM computes it:
///   i, f, g, o = the quarters of W_ih x + b_ih + W_hh h + b_hh
///   c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')
/// hx holds h and c. With one parameter more in each direction, weight_hr (P, H) with P < H, h' = W_hr (sigmoid(o)
/// tanh(c')) has size P wherever it stands above as H, and c keeps H. Returns the output, h and c.
inline std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                               int64_t num_layers, double dropout, bool train, bool bidirectional,
                                               bool batch_first) {
  return ops::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}
inline std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                               TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                               bool train, bool bidirectional) {
  return ops::lstm_data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}
/// One step: hx holds h and c, and so does the result.
inline std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                            const std::optional<Tensor>& b_ih = std::nullopt,
                                            const std::optional<Tensor>& b_hh = std::nullopt) {
  return ops::lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
}

/// The recurrence of each step; the numbers are those that _cudnn_rnn has for them.
enum class RecurrentMode { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

/// What layers are there.
struct RecurrentLayers {
  RecurrentMode mode = RecurrentMode::Tanh;
  int64_t input_size = 0, hidden_size = 0;
  int64_t projection = 0;  // of an LSTM's h; 0: none
  int64_t layers = 1;
  bool bidirectional = false, biases = true;

  int64_t directions() const { return bidirectional ? 2 : 1; }  // 1 or 2
  /// How many vectors of the hidden size a step computes.
  int64_t gates() const { return mode == RecurrentMode::Lstm ? 4 : mode == RecurrentMode::Gru ? 3 : 1; }
  /// The size of h.
  int64_t output_size() const { return projection > 0 ? projection : hidden_size; }
  /// The parameters of each layer and direction: weight_ih, weight_hh, bias_ih, bias_hh, weight_hr.
  int64_t weights_per_cell() const { return 2 + (biases ? 2 : 0) + (projection > 0 ? 1 : 0); }
};

/// The sequences of a call.
struct RecurrentInput {
  Tensor data;              // (T, N, in), or packed, (sum of lengths, in)
  IntArrayRef batch_sizes;  // at each step; empty: not packed
  Tensor h, c;              // (layers * directions, N, output size), (.., hidden size); c undefined unless LSTM
  /// N; of packed sequences how many there are at the first step.
  int64_t batch() const { return batch_sizes.empty() ? data.size(1) : batch_sizes[0]; }

  template <class F>
  void each_tensor(const F& f) {  // see core/dispatch/cpu_fallback.h
    for (Tensor* t : {&data, &h, &c}) f(*t);
  }
};

namespace native {
// A state or a gradient as operators take it, which there may be none of.
inline std::optional<Tensor> if_defined(const Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; }
// Throw unless the input, the state, and the parameters are those that the layers need: ValueError on other shapes,
// TypeError on other dtypes.
void check_recurrent(const char* op, const RecurrentLayers& layers, const RecurrentInput& input, TensorList weights);
void check_recurrent_state(const char* op, const RecurrentLayers& layers, const Tensor& h, const Tensor& c,
                           int64_t batch);
}  // namespace native

namespace kernels {
// What the input and h give to the gates, (rows, gates * H), and the state before and after, (rows, H): c of an LSTM,
// for which next_c is defined, h of a GRU. All are row-major and of one floating point dtype, and none is empty.
inline constinit Kernel<void(const Tensor& next_h, const Tensor& next_c, const Tensor& from_input,
                             const Tensor& from_hidden, const Tensor& state)>
    recurrent_gates{"recurrent_gates"};
}  // namespace kernels

}  // namespace rush
