#include "core/ops/nn/recurrent.h"

#include <algorithm>
#include <functional>

#include "core/ops/basic.h"
#include "core/ops/nn/cudnn_rnn.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/recurrent_layer.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/register.h"
#include "core/ops/view/read_integers.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

// ---- what they get ----

void check_recurrent_state(const char* op, const RecurrentLayers& layers, const Tensor& h, const Tensor& c,
                           int64_t batch) {
  const auto check = [&](const char* name, const Tensor& part, int64_t size) {
    const int64_t expected[] = {layers.layers * layers.directions(), batch, size};
    RUSH_CHECK_VALUE(part.defined() && part.sizes() == IntArrayRef(expected), op, ": expected ", name, " of shape ",
                     IntArrayRef(expected), ", got ", part.defined() ? str(part.sizes()) : "none");
  };
  check("h", h, layers.output_size());
  if (layers.mode == RecurrentMode::Lstm) check("c", c, layers.hidden_size);
}

namespace {

void check_sequences(const char* op, const RecurrentLayers& layers, const Tensor& data, IntArrayRef batch_sizes) {
  const bool packed = !batch_sizes.empty();
  RUSH_CHECK_VALUE(data.dim() == (packed ? 2 : 3), op, ": input must have ", packed ? 2 : 3, " dimensions, got ",
                   data.dim(), " in shape ", data.sizes());
  RUSH_CHECK_VALUE(data.size(-1) == layers.input_size, op, ": input.size(-1) must be equal to input_size. Expected ",
                   layers.input_size, ", got ", data.size(-1), " in an input of shape ", data.sizes());
  RUSH_CHECK_VALUE(packed || data.size(0) > 0, op, ": the input has no time steps");
  if (!packed) return;
  RUSH_CHECK_VALUE(batch_sizes.back() > 0 && std::is_sorted(batch_sizes.begin(), batch_sizes.end(), std::greater<>()),
                   op, ": expected batch sizes that are positive and never grow, got ", batch_sizes);
  int64_t rest = data.size(0);
  for (const int64_t running : batch_sizes) rest = running <= rest ? rest - running : -1;
  RUSH_CHECK_VALUE(rest == 0, op, ": the batch sizes ", batch_sizes, " do not add up to the ", data.size(0),
                   " rows of the data");
}

void check_weights(const char* op, const RecurrentLayers& layers, TensorList weights) {
  const int64_t rows = layers.gates() * layers.hidden_size, directions = layers.directions();
  const auto per_cell = static_cast<size_t>(layers.weights_per_cell());
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto layer = static_cast<int64_t>(i / per_cell) / directions;
    const size_t part = i % per_cell;
    DimVector expected = {rows};
    if (part == 0) expected.push_back(layer == 0 ? layers.input_size : directions * layers.output_size());
    if (part == 1) expected.push_back(layers.output_size());
    if (layers.projection > 0 && part + 1 == per_cell) expected = {layers.projection, layers.hidden_size};
    RUSH_CHECK_VALUE(weights[i].defined() && weights[i].sizes() == IntArrayRef(expected), op, ": expected parameter ",
                     i, " of shape ", expected, ", got ", weights[i].defined() ? str(weights[i].sizes()) : "none");
  }
}

}  // namespace

void check_recurrent(const char* op, const RecurrentLayers& layers, const RecurrentInput& input, TensorList weights) {
  check_sequences(op, layers, input.data, input.batch_sizes);
  check_recurrent_state(op, layers, input.h, input.c, input.batch());
  check_weights(op, layers, weights);
  const ScalarType dtype = input.data.scalar_type();
  const auto check = [&](const Tensor& t) {
    RUSH_CHECK_TYPE(!t.defined() || t.scalar_type() == dtype, op, ": dtypes differ: the input is ", dtype,
                    ", a state or parameter is ", t.scalar_type());
  };
  check(input.h);
  check(input.c);
  for (const Tensor& weight : weights) check(weight);
}

namespace {

constexpr const char* recurrent_name(RecurrentMode mode) {
  switch (mode) {
    case RecurrentMode::Relu: return "rnn_relu";
    case RecurrentMode::Tanh: return "rnn_tanh";
    case RecurrentMode::Lstm: return "lstm";
    case RecurrentMode::Gru: return "gru";
  }
  return "";
}

}  // namespace

RecurrentLayers recurrent_layers_of(RecurrentMode mode, TensorList params, bool has_biases, int64_t num_layers,
                                    bool bidirectional) {
  const char* op = recurrent_name(mode);
  RecurrentLayers layers{mode, 0, 0, 0, num_layers, bidirectional, has_biases};
  const int64_t count = static_cast<int64_t>(params.size());
  RUSH_CHECK_VALUE(num_layers > 0 && num_layers <= count, op, ": ", num_layers, " layers cannot have ", count,
                   " parameters");
  const int64_t cells = num_layers * layers.directions(), plain = layers.weights_per_cell();
  const bool projected = mode == RecurrentMode::Lstm && count == cells * (plain + 1);
  RUSH_CHECK_VALUE(projected || count == cells * plain, op, ": expected ", plain, " parameters for each of ", cells,
                   " layers and directions, got ", count);
  const auto matrix = [&](int64_t i) {
    const Tensor& weight = params[static_cast<size_t>(i)];
    RUSH_CHECK_VALUE(weight.defined() && weight.dim() == 2, op, ": expected parameter ", i, " to be a matrix");
    return weight;
  };
  layers.input_size = matrix(0).size(1);
  layers.hidden_size = matrix(0).size(0) / layers.gates();
  RUSH_CHECK_VALUE(layers.hidden_size > 0, op, ": the hidden size is 0");
  layers.projection = projected ? matrix(plain).size(0) : 0;
  RUSH_CHECK_VALUE(!projected || (layers.projection > 0 && layers.projection < layers.hidden_size), op,
                   ": expected a projection from ", layers.hidden_size, " to fewer numbers, got ", layers.projection);
  return layers;
}

namespace {

// ---- step by step ----

struct CellState {
  Tensor h, c;  // c: LSTM only
};

struct CellWeights {
  Tensor weight_ih, weight_hh;
  std::optional<Tensor> bias_ih, bias_hh, weight_hr;
};

CellWeights weights_of(TensorList w) {
  CellWeights weights{w[0], w[1], std::nullopt, std::nullopt, std::nullopt};
  if (w.size() >= 4) weights.bias_ih = w[2], weights.bias_hh = w[3];
  if (w.size() % 2 == 1) weights.weight_hr = w[w.size() - 1];
  return weights;
}

// From what the input gives to the gates, (N, gates * H), and what h gives. Formulas: recurrent.h.
CellState next_state_by_parts(RecurrentMode mode, const Tensor& from_input, const Tensor& from_hidden,
                              const CellState& state) {
  if (mode == RecurrentMode::Lstm) {
    const std::vector<Tensor> gates = (from_input + from_hidden).chunk(4, -1);  // i, f, g, o
    const Tensor c = gates[1].sigmoid() * state.c + gates[0].sigmoid() * gates[2].tanh();
    return {gates[3].sigmoid() * c.tanh(), c};
  }
  if (mode == RecurrentMode::Gru) {
    const std::vector<Tensor> x = from_input.chunk(3, -1), h = from_hidden.chunk(3, -1);  // r, z, n
    const Tensor r = (x[0] + h[0]).sigmoid(), z = (x[1] + h[1]).sigmoid();
    const Tensor n = (x[2] + r * h[2]).tanh();
    return {n + z * (state.h - n), Tensor()};
  }
  const Tensor sum = from_input + from_hidden;
  return {mode == RecurrentMode::Tanh ? sum.tanh() : ops::relu(sum), Tensor()};
}

// Note [Gates in one pass]
// A device may have a kernel that computes all gates of an LSTM or a GRU at once. It has no derivative, so where a
// gradient is asked for, the gates are made of public operators; where calls are traced, they are, too, because those
// are what compiled functions fuse and other programs know.
bool are_in_one_pass(RecurrentMode mode, const Tensor& from_input, const Tensor& from_hidden, const CellState& state) {
  const Tensor& before = mode == RecurrentMode::Lstm ? state.c : state.h;
  const bool is_traced = dispatch_state.included.without(dispatch_state.excluded).has(DispatchKey::Tracer);
  const bool has_gates = mode == RecurrentMode::Lstm || mode == RecurrentMode::Gru;
  if (!has_gates || is_traced || !kernels::recurrent_gates.has(before.device().type)) return false;
  const auto fits = [&](const Tensor& t) {
    const bool is_alike = t.device() == before.device() && t.scalar_type() == before.scalar_type();
    return is_alike && !(dispatch_state.grad_mode && t.requires_grad());
  };
  const bool computes = before.is_floating_point() && has_arithmetic(before.scalar_type());
  return computes && fits(from_input) && fits(from_hidden) && fits(before);
}

CellState next_state(RecurrentMode mode, const Tensor& from_input, const Tensor& from_hidden, const CellState& state) {
  if (!are_in_one_pass(mode, from_input, from_hidden, state)) {
    return next_state_by_parts(mode, from_input, from_hidden, state);
  }
  if (mode == RecurrentMode::Gru) return {ops::gru_gates(from_input, from_hidden, state.h), Tensor()};
  auto [h, c] = ops::lstm_gates(from_input, from_hidden, state.c);
  return {h, c};
}

CellState gates(const char* op, RecurrentMode mode, const Tensor& from_input, const Tensor& from_hidden,
                const Tensor& before) {
  DimVector sizes(before.sizes());
  RUSH_CHECK_VALUE(!sizes.empty(), op, ": expected a state of at least 1 dimension, got none");
  sizes.back() = multiply_sizes(op, sizes.back(), mode == RecurrentMode::Lstm ? 4 : 3);
  for (const Tensor* t : {&from_input, &from_hidden}) {
    RUSH_CHECK_VALUE(t->sizes() == IntArrayRef(sizes), op, ": expected gates of shape ", sizes, ", got ", t->sizes());
    RUSH_CHECK_TYPE(t->scalar_type() == before.scalar_type(), op, ": expected gates of ", before.scalar_type(),
                    ", got ", t->scalar_type());
  }
  if (!are_in_one_pass(mode, from_input, from_hidden, {before, before})) {
    return next_state_by_parts(mode, from_input, from_hidden, {before, before});
  }
  const auto like_state = [&] {
    return detail::empty_contiguous(before.sizes(), before.scalar_type(), before.device());
  };
  const CellState next{like_state(), mode == RecurrentMode::Lstm ? like_state() : Tensor()};
  if (before.numel() > 0) {
    kernels::recurrent_gates(before.device().type, next.h, next.c, contiguous(from_input), contiguous(from_hidden),
                             contiguous(before));
  }
  return next;
}

std::tuple<Tensor, Tensor> lstm_gates(const Tensor& from_input, const Tensor& from_hidden, const Tensor& c) {
  const CellState next = gates("lstm_gates", RecurrentMode::Lstm, from_input, from_hidden, c);
  return {next.h, next.c};
}

Tensor gru_gates(const Tensor& from_input, const Tensor& from_hidden, const Tensor& h) {
  return gates("gru_gates", RecurrentMode::Gru, from_input, from_hidden, h).h;
}

template <class Fn>
CellState map_state(const CellState& state, const Fn& fn) {
  return {fn(state.h), state.c.defined() ? fn(state.c) : Tensor()};
}

// Rows `begin` to `end` of h and c.
CellState state_rows(const CellState& state, int64_t begin, int64_t end) {
  if (begin == 0 && end == state.h.size(0)) return state;
  return map_state(state, [&](const Tensor& t) { return t.narrow(0, begin, end - begin); });
}

CellState join_states(const std::vector<CellState>& parts) {
  std::vector<Tensor> h, c;
  for (const CellState& part : parts) {
    h.push_back(part.h);
    if (part.c.defined()) c.push_back(part.c);
  }
  return {rush::cat(h), c.empty() ? Tensor() : rush::cat(c)};
}

// One layer in one direction: h at each step, and the last state. The batch of a packed sequence shrinks from step to
// step, so forwards, rows leave the state when their sequence ends, and backwards, they enter it.
std::tuple<std::vector<Tensor>, CellState> run_direction(RecurrentMode mode, const std::vector<Tensor>& from_input,
                                                         const CellWeights& w, const CellState& start, bool reverse) {
  const size_t steps = from_input.size();
  std::vector<Tensor> outputs(steps);
  std::vector<CellState> ended;
  CellState state = reverse ? state_rows(start, 0, from_input.back().size(0)) : start;
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    const int64_t running = state.h.size(0), batch = from_input[t].size(0);
    if (batch < running) {
      ended.push_back(state_rows(state, batch, running));
      state = state_rows(state, 0, batch);
    } else if (batch > running) {
      state = join_states({state, state_rows(start, running, batch)});
    }
    state = next_state(mode, from_input[t], ops::linear(state.h, w.weight_hh, w.bias_hh), state);
    if (w.weight_hr) state.h = ops::linear(state.h, *w.weight_hr, std::nullopt);
    outputs[t] = state.h;
  }
  if (!ended.empty()) {
    ended.push_back(state);
    std::reverse(ended.begin(), ended.end());  // the shortest sequence, last in the batch, ended first
    state = join_states(ended);
  }
  return {outputs, state};
}

using RecurrentResult = std::tuple<Tensor, Tensor, Tensor>;  // output, h, c

}  // namespace

RecurrentResult recurrent_layer_by_operators(const Tensor& input, TensorList weights, const Tensor& h, const Tensor& c,
                                             RecurrentMode mode, bool reverse, IntArrayRef batch_sizes) {
  const CellWeights w = weights_of(weights);
  // The inputs' part of all gates is one matrix product.
  const std::vector<Tensor> from_input = ops::linear(input, w.weight_ih, w.bias_ih).split_with_sizes(batch_sizes);
  const CellState start = map_state({h, c}, [](const Tensor& t) { return t.squeeze(0); });
  const auto [steps, end] = run_direction(mode, from_input, w, start, reverse);
  const CellState last = map_state(end, [](const Tensor& t) { return t.unsqueeze(0); });
  return {rush::cat(steps), last.h, last.c};
}

namespace {

bool any_requires_grad(const RecurrentInput& in, TensorList params) {
  const auto requires_grad = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
  return dispatch_state.grad_mode && (requires_grad(in.data) || requires_grad(in.h) || requires_grad(in.c) ||
                                      std::any_of(params.begin(), params.end(), requires_grad));
}

Tensor join(const std::vector<Tensor>& parts) { return parts.size() == 1 ? parts[0] : rush::cat(parts); }

// ---- layer by layer ----

// One layer in one direction: as one operator where the device has its steps, and there is something to compute.
RecurrentResult run_layer(RecurrentMode mode, const RecurrentInput& in, TensorList weights, bool reverse) {
  const Tensor& x = in.data;
  if (!kernels::recurrent_step.has(x.device().type) || !is_floating_point(x.scalar_type()) || x.numel() == 0) {
    return recurrent_layer_by_operators(in.data, weights, in.h, in.c, mode, reverse, in.batch_sizes);
  }
  const auto [output, h, c, reserve] =
      ops::recurrent_layer(in.data, weights, in.h, if_defined(in.c), static_cast<int64_t>(mode), reverse,
                           any_requires_grad(in, weights), in.batch_sizes);
  return {output, h, c};
}

RecurrentResult layer_by_layer(const RecurrentLayers& layers, const RecurrentInput& in, TensorList params,
                               double dropout_p) {
  const bool packed = !in.batch_sizes.empty();
  const auto per_cell = static_cast<size_t>(layers.weights_per_cell());
  const DimVector all_run(packed ? 0 : static_cast<size_t>(in.data.size(0)), in.batch());
  const IntArrayRef batch_sizes = packed ? in.batch_sizes : IntArrayRef(all_run);
  Tensor input = packed ? in.data : in.data.flatten(0, 1);  // (rows, in)
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < layers.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const int64_t cell = layer * layers.directions() + direction;
      const auto of_cell = [&](const Tensor& t) { return t.defined() ? t.narrow(0, cell, 1) : Tensor(); };
      const RecurrentInput each{input, batch_sizes, of_cell(in.h), of_cell(in.c)};
      const auto [output, h, c] =
          run_layer(layers.mode, each, params.slice(static_cast<size_t>(cell) * per_cell, per_cell), direction == 1);
      outputs.push_back(output);
      last_h.push_back(h);
      if (c.defined()) last_c.push_back(c);
    }
    input = outputs.size() == 1 ? outputs[0] : rush::cat(outputs, -1);
    if (layer + 1 < layers.layers) input = ops::dropout(input, dropout_p, true);
  }
  const Tensor output = packed ? input : input.view({in.data.size(0), in.data.size(1), input.size(1)});
  return {output, join(last_h), last_c.empty() ? Tensor() : join(last_c)};
}

// ---- by cuDNN ----

// All layers at once, or where something is dropped between them, one at a time: what is dropped is then drawn as on
// the CPU, and the generator's state alone says what it will be.
RecurrentResult by_cudnn(const RecurrentLayers& layers, const RecurrentInput& in, TensorList params, double dropout_p) {
  const bool for_backward = any_requires_grad(in, params);
  const int64_t at_once = dropout_p > 0 ? 1 : layers.layers, cells = at_once * layers.directions();
  const auto weights = static_cast<size_t>(cells * layers.weights_per_cell());
  Tensor input = in.data;
  std::vector<Tensor> last_h, last_c;
  for (int64_t first = 0; first < layers.layers; first += at_once) {
    if (first > 0) input = ops::dropout(input, dropout_p, true);
    const auto of_these = [&](const Tensor& state) { return state.narrow(0, first * layers.directions(), cells); };
    const auto [output, h, c, reserve, buffer] = ops::_cudnn_rnn(
        input, params.slice(static_cast<size_t>(first / at_once) * weights, weights), layers.weights_per_cell(),
        std::nullopt, of_these(in.h), in.c.defined() ? std::optional(of_these(in.c)) : std::nullopt,
        static_cast<int64_t>(layers.mode), layers.hidden_size, layers.projection, at_once, false, 0.0, for_backward,
        layers.bidirectional, in.batch_sizes, std::nullopt);
    input = output;
    last_h.push_back(h);
    if (c.defined()) last_c.push_back(c);
  }
  return {input, join(last_h), last_c.empty() ? Tensor() : join(last_c)};
}

// ---- the operators ----

RecurrentResult run_recurrent(RecurrentMode mode, const RecurrentInput& in, TensorList params, bool has_biases,
                              int64_t num_layers, double dropout_p, bool train, bool bidirectional) {
  const char* op = recurrent_name(mode);
  RUSH_CHECK_VALUE(dropout_p >= 0 && dropout_p <= 1, op, ": dropout probability has to be between 0 and 1, but got ",
                   dropout_p);
  const RecurrentLayers layers = recurrent_layers_of(mode, params, has_biases, num_layers, bidirectional);
  check_recurrent(op, layers, in, params);
  const double dropped = train && num_layers > 1 ? dropout_p : 0;
  return ops::cudnn_is_acceptable(in.data) ? by_cudnn(layers, in, params, dropped)
                                           : layer_by_layer(layers, in, params, dropped);
}

RecurrentResult run_padded(RecurrentMode mode, const Tensor& input, const Tensor& h, const Tensor& c, TensorList params,
                           bool has_biases, int64_t num_layers, double dropout_p, bool train, bool bidirectional,
                           bool batch_first) {
  RUSH_CHECK_VALUE(input.dim() == 3, recurrent_name(mode), ": input must have 3 dimensions, got ", input.dim(),
                   " in shape ", input.sizes());
  const RecurrentInput in{batch_first ? input.transpose(0, 1) : input, {}, h, c};  // (T, N, in)
  auto [output, last_h, last_c] =
      run_recurrent(mode, in, params, has_biases, num_layers, dropout_p, train, bidirectional);
  return {batch_first ? output.transpose(0, 1) : output, last_h, last_c};
}

RecurrentResult run_packed(RecurrentMode mode, const Tensor& data, const Tensor& batch_sizes, const Tensor& h,
                           const Tensor& c, TensorList params, bool has_biases, int64_t num_layers, double dropout_p,
                           bool train, bool bidirectional) {
  RUSH_CHECK_VALUE(batch_sizes.device().is_cpu() && batch_sizes.scalar_type() == kInt64 && batch_sizes.dim() == 1 &&
                       batch_sizes.numel() > 0,
                   recurrent_name(mode), ": expected batch sizes in one dimension of int64 on the CPU, got ",
                   batch_sizes.scalar_type(), " of shape ", batch_sizes.sizes(), " on ", batch_sizes.device());
  const std::vector<int64_t> running = read_integers(batch_sizes);
  return run_recurrent(mode, {data, running, h, c}, params, has_biases, num_layers, dropout_p, train, bidirectional);
}

template <RecurrentMode mode>
std::tuple<Tensor, Tensor> recurrent(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                     int64_t num_layers, double dropout_p, bool train, bool bidirectional,
                                     bool batch_first) {
  auto [output, h, c] = run_padded(mode, input, hx, Tensor(), params, has_biases, num_layers, dropout_p, train,
                                   bidirectional, batch_first);
  return {output, h};
}

template <RecurrentMode mode>
std::tuple<Tensor, Tensor> recurrent_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                          TensorList params, bool has_biases, int64_t num_layers, double dropout_p,
                                          bool train, bool bidirectional) {
  auto [output, h, c] = run_packed(mode, data, batch_sizes, hx, Tensor(), params, has_biases, num_layers, dropout_p,
                                   train, bidirectional);
  return {output, h};
}

void check_lstm_state(const char* op, TensorList hx) {
  RUSH_CHECK_VALUE(hx.size() == 2, op, ": expected h and c, got ", hx.size(), " tensors");
}

RecurrentResult lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers,
                     double dropout_p, bool train, bool bidirectional, bool batch_first) {
  check_lstm_state("lstm", hx);
  return run_padded(RecurrentMode::Lstm, input, hx[0], hx[1], params, has_biases, num_layers, dropout_p, train,
                    bidirectional, batch_first);
}

RecurrentResult lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params,
                          bool has_biases, int64_t num_layers, double dropout_p, bool train, bool bidirectional) {
  check_lstm_state("lstm", hx);
  return run_packed(RecurrentMode::Lstm, data, batch_sizes, hx[0], hx[1], params, has_biases, num_layers, dropout_p,
                    train, bidirectional);
}

CellState one_step(RecurrentMode mode, const Tensor& input, const CellState& state, const Tensor& w_ih,
                   const Tensor& w_hh, const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) {
  const char* op = recurrent_name(mode);
  RUSH_CHECK_VALUE((input.dim() == 1 || input.dim() == 2) && w_hh.dim() == 2 && w_hh.size(1) > 0, op,
                   "_cell: expected an input of 1 or 2 dimensions and w_hh (gates * H, H), got shapes ", input.sizes(),
                   " and ", w_hh.sizes());
  const int64_t hidden = w_hh.size(1), rows = RecurrentLayers{mode}.gates() * hidden;
  DimVector state_sizes(input.sizes());
  state_sizes.back() = hidden;
  const auto check = [&](const char* name, const Tensor& part, IntArrayRef sizes) {
    RUSH_CHECK_VALUE(part.defined() && part.sizes() == sizes, op, "_cell: expected ", name, " of shape ", sizes,
                     ", got ", part.defined() ? str(part.sizes()) : "none");
  };
  check("w_ih", w_ih, {rows, input.size(-1)});
  check("w_hh", w_hh, {rows, hidden});
  check("h", state.h, state_sizes);
  if (mode == RecurrentMode::Lstm) check("c", state.c, state_sizes);
  return next_state(mode, ops::linear(input, w_ih, b_ih), ops::linear(state.h, w_hh, b_hh), state);
}

template <RecurrentMode mode>
Tensor recurrent_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                      const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) {
  return one_step(mode, input, {hx, Tensor()}, w_ih, w_hh, b_ih, b_hh).h;
}

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) {
  check_lstm_state("lstm_cell", hx);
  const CellState next = one_step(RecurrentMode::Lstm, input, {hx[0], hx[1]}, w_ih, w_hh, b_ih, b_hh);
  return {next.h, next.c};
}

}  // namespace
}  // namespace native

void register_recurrent_ops(Registry& r) {
  using enum RecurrentMode;
  r.composite(ops::rnn_tanh, native::recurrent<Tanh>);
  r.composite(ops::rnn_tanh_data, native::recurrent_data<Tanh>);
  r.composite(ops::rnn_tanh_cell, native::recurrent_cell<Tanh>);
  r.composite(ops::rnn_relu, native::recurrent<Relu>);
  r.composite(ops::rnn_relu_data, native::recurrent_data<Relu>);
  r.composite(ops::rnn_relu_cell, native::recurrent_cell<Relu>);
  r.composite(ops::gru, native::recurrent<Gru>);
  r.composite(ops::gru_data, native::recurrent_data<Gru>);
  r.composite(ops::gru_cell, native::recurrent_cell<Gru>);
  r.composite(ops::lstm, native::lstm);
  r.composite(ops::lstm_data, native::lstm_data);
  r.composite(ops::lstm_cell, native::lstm_cell);
  r.native(ops::lstm_gates, native::lstm_gates);
  r.native(ops::gru_gates, native::gru_gates);
}

}  // namespace rush
