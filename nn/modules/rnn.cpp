#include "nn/modules/rnn.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "core/ops/activation.h"
#include "core/ops/binary.h"
#include "core/ops/factories.h"
#include "core/ops/join.h"
#include "nn/functional/dropout.h"
#include "nn/functional/linear.h"
#include "nn/functional/optional_tensor.h"
#include "nn/init.h"

namespace rush::nn {

namespace {

using detail::RecurrentState;
using utils::rnn::PackedSequence;

template <class Options>
constexpr bool kHasCellState = std::is_same_v<Options, LSTMOptions> || std::is_same_v<Options, LSTMCellOptions>;
template <class Options>
constexpr bool kIsGru = std::is_same_v<Options, GRUOptions> || std::is_same_v<Options, GRUCellOptions>;
template <class Options>
constexpr const char* kName = kHasCellState<Options> ? "LSTM"
                              : kIsGru<Options>      ? "GRU"
                                                     : "RNN";
// How many vectors of the hidden size a step computes.
template <class Options>
constexpr int64_t kGates = kHasCellState<Options> ? 4
                           : kIsGru<Options>      ? 3
                                                  : 1;

template <class Options>
int64_t projection_of(const Options& o) {
  if constexpr (requires { o.proj_size(); }) return o.proj_size();
  return 0;
}

// The size of h.
template <class Options>
int64_t output_size(const Options& o) {
  return projection_of(o) > 0 ? projection_of(o) : o.hidden_size();
}

template <class Options>
int64_t directions_of(const Options& o) {
  return o.bidirectional() ? 2 : 1;
}

// The next state, from what the input gives to the gates (N, gates * H) and what h gives. Formulas: rnn.h.
template <class Options>
RecurrentState advance(const Options& o, const Tensor& from_input, const Tensor& from_hidden,
                       const RecurrentState& state) {
  if constexpr (kHasCellState<Options>) {
    const std::vector<Tensor> gates = (from_input + from_hidden).chunk(4, -1);  // i, f, g, o
    const Tensor c = gates[1].sigmoid() * state.c + gates[0].sigmoid() * gates[2].tanh();
    return {gates[3].sigmoid() * c.tanh(), c};
  } else if constexpr (kIsGru<Options>) {
    const std::vector<Tensor> x = from_input.chunk(3, -1), h = from_hidden.chunk(3, -1);  // r, z, n
    const Tensor r = (x[0] + h[0]).sigmoid(), z = (x[1] + h[1]).sigmoid();
    const Tensor n = (x[2] + r * h[2]).tanh();
    return {n + z * (state.h - n), Tensor()};
  } else {
    const Tensor sum = from_input + from_hidden;
    return {enumtype::holds<enumtype::kTanh>(o.nonlinearity()) ? sum.tanh() : relu(sum), Tensor()};
  }
}

struct Weights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
};

std::string suffix_of(int64_t layer, bool reverse) { return str("_l", layer, reverse ? "_reverse" : ""); }

Weights weights_of(const OrderedDict<std::string, Tensor>& parameters, int64_t layer, bool reverse) {
  const std::string suffix = suffix_of(layer, reverse);
  const auto get = [&](const char* name) {
    const Tensor* found = parameters.find(name + suffix);
    return found ? *found : Tensor();
  };
  return {get("weight_ih"), get("weight_hh"), get("bias_ih"), get("bias_hh"), get("weight_hr")};
}

void uniform_all(const std::vector<Tensor>& parameters, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& parameter : parameters) init::uniform_(parameter, -bound, bound);
}

template <class Fn>
RecurrentState map_state(const RecurrentState& state, const Fn& fn) {
  return {fn(state.h), state.c.defined() ? fn(state.c) : Tensor()};
}

// Rows `begin` to `end` of h and c.
RecurrentState rows(const RecurrentState& state, int64_t begin, int64_t end) {
  if (begin == 0 && end == state.h.size(0)) return state;
  return map_state(state, [&](const Tensor& t) { return t.narrow(0, begin, end - begin); });
}

RecurrentState join_rows(const std::vector<RecurrentState>& parts) {
  std::vector<Tensor> h, c;
  for (const RecurrentState& part : parts) {
    h.push_back(part.h);
    if (part.c.defined()) c.push_back(part.c);
  }
  return {cat(h), c.empty() ? Tensor() : cat(c)};
}

// One layer in one direction: h at each step, and the last state. The batch of a packed sequence shrinks from step to
// step, so forwards, rows leave the state when their sequence ends, and backwards, they enter it.
template <class Options>
std::tuple<std::vector<Tensor>, RecurrentState> run_layer(const Options& o, const std::vector<Tensor>& from_input,
                                                          const Weights& w, const RecurrentState& start, bool reverse) {
  const size_t steps = from_input.size();
  std::vector<Tensor> outputs(steps);
  std::vector<RecurrentState> ended;
  RecurrentState state = reverse ? rows(start, 0, from_input.back().size(0)) : start;
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    const int64_t running = state.h.size(0), batch = from_input[t].size(0);
    if (batch < running) {
      ended.push_back(rows(state, batch, running));
      state = rows(state, 0, batch);
    } else if (batch > running) {
      state = join_rows({state, rows(start, running, batch)});
    }
    state = advance(o, from_input[t], functional::linear(state.h, w.weight_hh, w.bias_hh), state);
    if (w.weight_hr.defined()) state.h = functional::linear(state.h, w.weight_hr);
    outputs[t] = state.h;
  }
  if (!ended.empty()) {
    ended.push_back(state);
    std::reverse(ended.begin(), ended.end());  // the shortest sequence, last in the batch, ended first
    state = join_rows(ended);
  }
  return {outputs, state};
}

template <class Options>
RecurrentState initial_state(const Options& o, int64_t batch, const Tensor& like) {
  const auto start = [&](int64_t size) {
    return zeros({o.num_layers() * directions_of(o), batch, size}, like.options());
  };
  return {start(output_size(o)), kHasCellState<Options> ? start(o.hidden_size()) : Tensor()};
}

template <class Options>
void check_state(const Options& o, const RecurrentState& state, int64_t batch) {
  const auto check = [&](const char* name, const Tensor& part, int64_t size) {
    const std::vector<int64_t> expected = {o.num_layers() * directions_of(o), batch, size};
    RUSH_CHECK_VALUE(part.defined() && part.sizes() == IntArrayRef(expected), kName<Options>, ": expected ", name,
                     " of shape ", expected, ", got ", part.defined() ? str(part.sizes()) : "none");
  };
  check("h", state.h, output_size(o));
  if (kHasCellState<Options>) check("c", state.c, o.hidden_size());
}

// An undefined tensor is none.
std::optional<RecurrentState> as_state(const std::optional<Tensor>& hx) {
  if (!hx || !hx->defined()) return std::nullopt;
  return RecurrentState{*hx, Tensor()};
}
std::optional<RecurrentState> as_state(const std::optional<std::tuple<Tensor, Tensor>>& hx) {
  if (!hx) return std::nullopt;
  return RecurrentState{std::get<0>(*hx), std::get<1>(*hx)};
}

}  // namespace

template <class Derived, class Options>
detail::RNNImplBase<Derived, Options>::RNNImplBase(const Options& options) : options(options) {
  RNNImplBase::reset();
}

template <class Derived, class Options>
void detail::RNNImplBase<Derived, Options>::reset() {
  const Options& o = options;
  constexpr const char* name = kName<Options>;
  RUSH_CHECK_VALUE(o.input_size() > 0 && o.hidden_size() > 0 && o.num_layers() > 0, name, ": input size ",
                   o.input_size(), ", hidden size ", o.hidden_size(), " and layers ", o.num_layers(),
                   " must be positive");
  RUSH_CHECK_VALUE(o.dropout() >= 0 && o.dropout() <= 1, name, ": dropout has to be between 0 and 1, got ",
                   o.dropout());
  const int64_t projection = projection_of(o), gates = kGates<Options> * o.hidden_size();
  RUSH_CHECK_VALUE(projection >= 0 && projection < o.hidden_size(), name, ": proj_size ", projection,
                   " must be smaller than the hidden size ", o.hidden_size());
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    const int64_t input_size = layer == 0 ? o.input_size() : output_size(o) * directions_of(o);
    for (int64_t direction = 0; direction < directions_of(o); ++direction) {
      const std::string suffix = suffix_of(layer, direction == 1);
      this->register_parameter("weight_ih" + suffix, empty({gates, input_size}));
      this->register_parameter("weight_hh" + suffix, empty({gates, output_size(o)}));
      if (o.bias()) {
        this->register_parameter("bias_ih" + suffix, empty(gates));
        this->register_parameter("bias_hh" + suffix, empty(gates));
      }
      if (projection > 0) this->register_parameter("weight_hr" + suffix, empty({projection, o.hidden_size()}));
    }
  }
  reset_parameters();
}

template <class Derived, class Options>
void detail::RNNImplBase<Derived, Options>::reset_parameters() {
  uniform_all(this->parameters_.values(), options.hidden_size());
}

template <class Derived, class Options>
void detail::RNNImplBase<Derived, Options>::pretty_print(std::ostream& stream) const {
  const Options& o = options;
  stream << str("rush::nn::", kName<Options>, "(input_size=", o.input_size(), ", hidden_size=", o.hidden_size(),
                ", num_layers=", o.num_layers(), ", bias=", o.bias(), ", batch_first=", o.batch_first(),
                ", dropout=", o.dropout(), ", bidirectional=", o.bidirectional(),
                projection_of(o) > 0 ? str(", proj_size=", projection_of(o)) : "", ")");
}

template <class Derived, class Options>
std::tuple<Tensor, RecurrentState> detail::RNNImplBase<Derived, Options>::run_layers(Tensor input,
                                                                                     const RecurrentState& state,
                                                                                     IntArrayRef batch_sizes) {
  const bool packed = !batch_sizes.empty();
  std::vector<RecurrentState> last;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions_of(options); ++direction) {
      const int64_t cell = layer * directions_of(options) + direction;
      const Weights w = weights_of(this->parameters_, layer, direction == 1);
      // The inputs' part of all gates is one matrix product.
      const Tensor gates = functional::linear(input, w.weight_ih, w.bias_ih);
      const std::vector<Tensor> from_input = packed ? gates.split_with_sizes(batch_sizes) : gates.unbind(0);
      const RecurrentState start = map_state(state, [&](const Tensor& t) { return t[cell]; });
      const auto [steps, end] = run_layer(options, from_input, w, start, direction == 1);
      outputs.push_back(packed ? cat(steps) : stack(steps, 0));
      last.push_back(map_state(end, [](const Tensor& t) { return t.unsqueeze(0); }));
    }
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
    if (options.dropout() > 0 && layer + 1 < options.num_layers()) {
      const auto drop = functional::DropoutFuncOptions().p(options.dropout()).training(this->is_training());
      input = functional::dropout(input, drop);
    }
  }
  return {input, join_rows(last)};
}

template <class Derived, class Options>
std::tuple<Tensor, RecurrentState> detail::RNNImplBase<Derived, Options>::run(const Tensor& input,
                                                                              const std::optional<RecurrentState>& hx) {
  RUSH_CHECK_VALUE((input.dim() == 2 || input.dim() == 3) && input.size(-1) == options.input_size(), kName<Options>,
                   ": expected an input of 2 or 3 dimensions, the last of size ", options.input_size(), ", got shape ",
                   input.sizes());
  const bool batched = input.dim() == 3, batch_first = batched && options.batch_first();
  const Tensor steps_first = batch_first ? input.transpose(0, 1) : batched ? input : input.unsqueeze(1);  // (T, N, in)
  RUSH_CHECK_VALUE(steps_first.size(0) > 0, kName<Options>, ": the input has no time steps");
  RecurrentState state = hx ? *hx : initial_state(options, steps_first.size(1), steps_first);
  if (hx && !batched) state = map_state(state, [](const Tensor& t) { return t.unsqueeze(1); });
  check_state(options, state, steps_first.size(1));

  auto [output, last] = run_layers(steps_first, state, {});
  if (batched) return {batch_first ? output.transpose(0, 1) : output, last};
  return {output.squeeze(1), map_state(last, [](const Tensor& t) { return t.squeeze(1); })};
}

template <class Derived, class Options>
std::tuple<PackedSequence, RecurrentState> detail::RNNImplBase<Derived, Options>::run(
    const PackedSequence& input, const std::optional<RecurrentState>& hx) {
  const Tensor& data = input.data();
  RUSH_CHECK_VALUE(data.dim() == 2 && data.size(1) == options.input_size(), kName<Options>,
                   ": expected packed data of 2 dimensions, the last of size ", options.input_size(), ", got shape ",
                   data.sizes());
  const Tensor sizes = input.batch_sizes().contiguous();
  const std::vector<int64_t> batch_sizes(sizes.data_ptr<int64_t>(), sizes.data_ptr<int64_t>() + sizes.numel());
  RUSH_CHECK_VALUE(!batch_sizes.empty() && batch_sizes.back() > 0 &&
                       std::is_sorted(batch_sizes.begin(), batch_sizes.end(), std::greater<>()),
                   kName<Options>, ": expected batch sizes that are positive and never grow, got ", batch_sizes);
  const auto reorder = [](const RecurrentState& state, const Tensor& order) {
    if (!order.defined()) return state;
    return map_state(state, [&](const Tensor& t) { return t.index_select(1, order); });
  };
  if (hx) check_state(options, *hx, batch_sizes[0]);
  const RecurrentState state = hx ? reorder(*hx, input.sorted_indices()) : initial_state(options, batch_sizes[0], data);
  auto [output, last] = run_layers(data, state, batch_sizes);
  return {PackedSequence(output, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),
          reorder(last, input.unsorted_indices())};
}

#define RUSH_RNN_BODY(Name)                                                                             \
  template class detail::RNNImplBase<Name##Impl, Name##Options>;                                        \
  std::tuple<Tensor, Tensor> Name##Impl::forward(const Tensor& input, std::optional<Tensor> hx) {       \
    auto [output, last] = run(input, as_state(hx));                                                     \
    return {output, last.h};                                                                            \
  }                                                                                                     \
  std::tuple<PackedSequence, Tensor> Name##Impl::forward_with_packed_input(const PackedSequence& input, \
                                                                           std::optional<Tensor> hx) {  \
    auto [output, last] = run(input, as_state(hx));                                                     \
    return {output, last.h};                                                                            \
  }
RUSH_RNN_BODY(RNN)
RUSH_RNN_BODY(GRU)
template class detail::RNNImplBase<LSTMImpl, LSTMOptions>;

std::tuple<Tensor, LSTMImpl::State> LSTMImpl::forward(const Tensor& input, std::optional<State> hx) {
  auto [output, last] = run(input, as_state(hx));
  return {output, State{last.h, last.c}};
}

std::tuple<PackedSequence, LSTMImpl::State> LSTMImpl::forward_with_packed_input(const PackedSequence& input,
                                                                                std::optional<State> hx) {
  auto [output, last] = run(input, as_state(hx));
  return {output, State{last.h, last.c}};
}

template <class Derived, class Options>
detail::RNNCellImplBase<Derived, Options>::RNNCellImplBase(const Options& options) : options(options) {
  RNNCellImplBase::reset();
}

template <class Derived, class Options>
void detail::RNNCellImplBase<Derived, Options>::reset() {
  RUSH_CHECK_VALUE(options.input_size() > 0 && options.hidden_size() > 0, kName<Options>, "Cell: input size ",
                   options.input_size(), " and hidden size ", options.hidden_size(), " must be positive");
  const int64_t gates = kGates<Options> * options.hidden_size();
  weight_ih = this->register_parameter("weight_ih", empty({gates, options.input_size()}));
  weight_hh = this->register_parameter("weight_hh", empty({gates, options.hidden_size()}));
  bias_ih = this->register_parameter("bias_ih", options.bias() ? empty(gates) : Tensor(), options.bias());
  bias_hh = this->register_parameter("bias_hh", options.bias() ? empty(gates) : Tensor(), options.bias());
  reset_parameters();
}

template <class Derived, class Options>
void detail::RNNCellImplBase<Derived, Options>::reset_parameters() {
  uniform_all(this->parameters(), options.hidden_size());
}

template <class Derived, class Options>
void detail::RNNCellImplBase<Derived, Options>::pretty_print(std::ostream& stream) const {
  std::string text = str("rush::nn::", kName<Options>, "Cell(", options.input_size(), ", ", options.hidden_size());
  if (!options.bias()) text += ", bias=false";
  if constexpr (requires { options.nonlinearity(); }) {
    if (!enumtype::holds<enumtype::kTanh>(options.nonlinearity())) {
      text += ", nonlinearity=" + enumtype::get_enum_name(options.nonlinearity());
    }
  }
  stream << text << ")";
}

template <class Derived, class Options>
RecurrentState detail::RNNCellImplBase<Derived, Options>::step(const Tensor& input,
                                                               const std::optional<RecurrentState>& hx) const {
  RUSH_CHECK_VALUE((input.dim() == 1 || input.dim() == 2) && input.size(-1) == options.input_size(), kName<Options>,
                   "Cell: expected an input of 1 or 2 dimensions, the last of size ", options.input_size(),
                   ", got shape ", input.sizes());
  DimVector sizes(input.sizes());
  sizes.back() = options.hidden_size();
  const auto check = [&](const Tensor& part) {
    RUSH_CHECK_VALUE(part.defined() && part.sizes() == IntArrayRef(sizes), kName<Options>,
                     "Cell: expected a state of shape ", sizes, ", got ", part.defined() ? str(part.sizes()) : "none");
  };
  RecurrentState state;
  if (hx) {
    state = *hx;
    check(state.h);
    if (kHasCellState<Options>) check(state.c);
  } else {
    state.h = zeros(sizes, input.options());
    if (kHasCellState<Options>) state.c = state.h;
  }
  return advance(options, functional::linear(input, weight_ih, bias_ih),
                 functional::linear(state.h, weight_hh, bias_hh), state);
}

template class detail::RNNCellImplBase<RNNCellImpl, RNNCellOptions>;
template class detail::RNNCellImplBase<LSTMCellImpl, LSTMCellOptions>;
template class detail::RNNCellImplBase<GRUCellImpl, GRUCellOptions>;

Tensor RNNCellImpl::forward(const Tensor& input, std::optional<Tensor> hx) { return step(input, as_state(hx)).h; }
Tensor GRUCellImpl::forward(const Tensor& input, std::optional<Tensor> hx) { return step(input, as_state(hx)).h; }

std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx) {
  const RecurrentState next = step(input, as_state(hx));
  return {next.h, next.c};
}

}  // namespace rush::nn
