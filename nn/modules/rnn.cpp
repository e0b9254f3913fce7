#include "nn/modules/rnn.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/ops/binary.h"
#include "core/ops/factories.h"
#include "core/ops/join.h"
#include "nn/functional/dropout.h"
#include "nn/functional/linear.h"
#include "nn/init.h"

namespace rush::nn {

namespace {

// h' and c' from the sum of the gates (N, 4H) and c (N, H).
std::tuple<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c) {
  const std::vector<Tensor> quarters = gates.chunk(4, -1);
  const Tensor next_c = quarters[1].sigmoid() * c + quarters[0].sigmoid() * quarters[2].tanh();
  return {quarters[3].sigmoid() * next_c.tanh(), next_c};
}

void uniform_all(const std::vector<Tensor>& parameters, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& parameter : parameters) init::uniform_(parameter, -bound, bound);
}

}  // namespace

LSTMImpl::LSTMImpl(const LSTMOptions& options) : options(options) { LSTMImpl::reset(); }

void LSTMImpl::reset() {
  const auto& o = options;
  RUSH_CHECK_VALUE(o.input_size() > 0 && o.hidden_size() > 0 && o.num_layers() > 0, "LSTM: input size ", o.input_size(),
                   ", hidden size ", o.hidden_size(), " and layers ", o.num_layers(), " must be positive");
  RUSH_CHECK_VALUE(o.dropout() >= 0 && o.dropout() <= 1, "LSTM: dropout has to be between 0 and 1, got ", o.dropout());
  const int64_t directions = o.bidirectional() ? 2 : 1, gates = 4 * o.hidden_size();
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    const int64_t input_size = layer == 0 ? o.input_size() : o.hidden_size() * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = str("_l", layer, direction == 1 ? "_reverse" : "");
      register_parameter("weight_ih" + suffix, empty({gates, input_size}));
      register_parameter("weight_hh" + suffix, empty({gates, o.hidden_size()}));
      if (!o.bias()) continue;
      register_parameter("bias_ih" + suffix, empty(gates));
      register_parameter("bias_hh" + suffix, empty(gates));
    }
  }
  reset_parameters();
}

void LSTMImpl::reset_parameters() { uniform_all(parameters_.values(), options.hidden_size()); }

void LSTMImpl::pretty_print(std::ostream& stream) const {
  stream << str("rush::nn::LSTM(input_size=", options.input_size(), ", hidden_size=", options.hidden_size(),
                ", num_layers=", options.num_layers(), ", bias=", options.bias(),
                ", batch_first=", options.batch_first(), ", dropout=", options.dropout(),
                ", bidirectional=", options.bidirectional(), ")");
}

LSTMImpl::Weights LSTMImpl::weights(int64_t layer, bool reverse) const {
  const std::string suffix = str("_l", layer, reverse ? "_reverse" : "");
  const auto get = [&](const char* name) {
    const Tensor* found = parameters_.find(name + suffix);
    return found ? *found : Tensor();
  };
  return {get("weight_ih"), get("weight_hh"), get("bias_ih"), get("bias_hh")};
}

std::tuple<Tensor, Tensor, Tensor> LSTMImpl::run_layer(const Tensor& input, const Weights& w, Tensor h, Tensor c,
                                                       bool reverse) const {
  const int64_t steps = input.size(0);
  // The inputs' part of all gates is one matrix product.
  const std::vector<Tensor> from_input = functional::linear(input, w.weight_ih, w.bias_ih).unbind(0);  // T x (N, 4H)
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const auto t = static_cast<size_t>(reverse ? steps - 1 - i : i);
    std::tie(h, c) = lstm_step(from_input[t] + functional::linear(h, w.weight_hh, w.bias_hh), c);
    outputs[t] = h;
  }
  return {stack(outputs, 0), h, c};
}

LSTMImpl::State LSTMImpl::initial_state(const Tensor& input) const {
  const int64_t cells = options.num_layers() * (options.bidirectional() ? 2 : 1);
  const Tensor state = zeros({cells, input.size(1), options.hidden_size()}, input.options());
  return {state, state};
}

std::tuple<Tensor, LSTMImpl::State> LSTMImpl::forward(const Tensor& input, std::optional<State> hx) {
  RUSH_CHECK_VALUE((input.dim() == 2 || input.dim() == 3) && input.size(-1) == options.input_size(),
                   "LSTM: expected an input of 2 or 3 dimensions, the last of size ", options.input_size(),
                   ", got shape ", input.sizes());
  const bool batched = input.dim() == 3, batch_first = batched && options.batch_first();
  Tensor layer_input = batch_first ? input.transpose(0, 1) : batched ? input : input.unsqueeze(1);  // (T, N, in)
  State state = hx ? *hx : initial_state(layer_input);
  if (hx && !batched) state = {std::get<0>(*hx).unsqueeze(1), std::get<1>(*hx).unsqueeze(1)};

  const int64_t directions = options.bidirectional() ? 2 : 1;
  const std::vector<int64_t> expected = {options.num_layers() * directions, layer_input.size(1), options.hidden_size()};
  RUSH_CHECK_VALUE(
      std::get<0>(state).sizes() == IntArrayRef(expected) && std::get<1>(state).sizes() == IntArrayRef(expected),
      "LSTM: expected h and c of shape ", expected, ", got ", std::get<0>(state).sizes(), " and ",
      std::get<1>(state).sizes());
  RUSH_CHECK_VALUE(layer_input.size(0) > 0, "LSTM: the input has no time steps");
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t cell = layer * directions + direction;
      auto [output, h, c] = run_layer(layer_input, weights(layer, direction == 1), std::get<0>(state)[cell],
                                      std::get<1>(state)[cell], direction == 1);
      outputs.push_back(output);
      last_h.push_back(h);
      last_c.push_back(c);
    }
    layer_input = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (options.dropout() > 0 && layer + 1 < options.num_layers()) {
      const auto drop = functional::DropoutFuncOptions().p(options.dropout()).training(is_training());
      layer_input = functional::dropout(layer_input, drop);
    }
  }
  State final_state{stack(last_h, 0), stack(last_c, 0)};
  if (!batched) {
    final_state = {std::get<0>(final_state).squeeze(1), std::get<1>(final_state).squeeze(1)};
    layer_input = layer_input.squeeze(1);
  }
  return {batch_first ? layer_input.transpose(0, 1) : layer_input, final_state};
}

LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& options) : options(options) { LSTMCellImpl::reset(); }

void LSTMCellImpl::reset() {
  const int64_t gates = 4 * options.hidden_size();
  weight_ih = register_parameter("weight_ih", empty({gates, options.input_size()}));
  weight_hh = register_parameter("weight_hh", empty({gates, options.hidden_size()}));
  bias_ih = register_parameter("bias_ih", options.bias() ? empty(gates) : Tensor(), options.bias());
  bias_hh = register_parameter("bias_hh", options.bias() ? empty(gates) : Tensor(), options.bias());
  reset_parameters();
}

void LSTMCellImpl::reset_parameters() { uniform_all(parameters(), options.hidden_size()); }

void LSTMCellImpl::pretty_print(std::ostream& stream) const {
  stream << str("rush::nn::LSTMCell(", options.input_size(), ", ", options.hidden_size(),
                options.bias() ? ")" : ", bias=false)");
}

std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx) {
  RUSH_CHECK_VALUE((input.dim() == 1 || input.dim() == 2) && input.size(-1) == options.input_size(),
                   "LSTMCell: expected an input of 1 or 2 dimensions, the last of size ", options.input_size(),
                   ", got shape ", input.sizes());
  if (!hx) {
    DimVector sizes(input.sizes());
    sizes.back() = options.hidden_size();
    const Tensor start = zeros(sizes, input.options());
    hx = {start, start};
  }
  const auto& [h, c] = *hx;
  const Tensor gates = functional::linear(input, weight_ih, bias_ih) + functional::linear(h, weight_hh, bias_hh);
  return lstm_step(gates, c);
}

}  // namespace rush::nn
