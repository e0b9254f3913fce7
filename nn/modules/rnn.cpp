#include "nn/modules/rnn.h"

#include <cmath>

#include "core/error/warning.h"
#include "core/ops/basic.h"
#include "core/ops/nn/recurrent.h"
#include "nn/functional/optional_tensor.h"
#include "nn/init.h"
#include "nn/module_text.h"

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

template <class Options>
RecurrentMode mode_of(const Options& o) {
  if constexpr (kHasCellState<Options>) return RecurrentMode::Lstm;
  if constexpr (kIsGru<Options>) return RecurrentMode::Gru;
  if constexpr (requires { o.nonlinearity(); }) {
    return enumtype::holds<enumtype::kTanh>(o.nonlinearity()) ? RecurrentMode::Tanh : RecurrentMode::Relu;
  }
}

template <class Options>
int64_t gates_of(const Options& o) {
  return RecurrentLayers{mode_of(o)}.gates();
}

template <class Options>
int64_t projection_of(const Options& o) {
  if constexpr (requires { o.proj_size(); }) return o.proj_size();
  return 0;
}

template <class Options>
RecurrentLayers layers_of(const Options& o) {
  return {mode_of(o), o.input_size(), o.hidden_size(), projection_of(o), o.num_layers(), o.bidirectional(), o.bias()};
}

std::string suffix_of(int64_t layer, bool reverse) { return str("_l", layer, reverse ? "_reverse" : ""); }

void uniform_all(const std::vector<Tensor>& parameters, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& parameter : parameters) init::uniform_(parameter, -bound, bound);
}

template <class Fn>
RecurrentState map_state(const RecurrentState& state, const Fn& fn) {
  const auto map = [&](const Tensor& t) { return t.defined() ? fn(t) : Tensor(); };
  return {map(state.h), map(state.c)};
}

RecurrentState zero_state(const RecurrentLayers& layers, int64_t batch, const Tensor& like) {
  const auto start = [&](int64_t size) {
    return zeros({layers.layers * layers.directions(), batch, size}, like.options());
  };
  return {start(layers.output_size()), layers.mode == RecurrentMode::Lstm ? start(layers.hidden_size) : Tensor()};
}

// All layers over padded input, (T, N, in) or with batch_first (N, T, in), or over packed data with its batch sizes.
template <class Options>
std::tuple<Tensor, RecurrentState> run_layers(const Options& o, const Tensor& input, const Tensor& batch_sizes,
                                              const RecurrentState& state, const std::vector<Tensor>& weights,
                                              bool training, bool batch_first) {
  const bool packed = batch_sizes.defined();
  if constexpr (kHasCellState<Options>) {
    const Tensor hx[] = {state.h, state.c};
    auto [output, h, c] =
        packed
            ? lstm(input, batch_sizes, hx, weights, o.bias(), o.num_layers(), o.dropout(), training, o.bidirectional())
            : lstm(input, hx, weights, o.bias(), o.num_layers(), o.dropout(), training, o.bidirectional(), batch_first);
    return {output, {h, c}};
  } else {
    const RecurrentMode mode = mode_of(o);
    const auto pick = [&](const auto& tanh, const auto& relu, const auto& gru) -> const auto& {
      return mode == RecurrentMode::Gru ? gru : mode == RecurrentMode::Tanh ? tanh : relu;
    };
    auto [output, h] =
        packed ? pick(ops::rnn_tanh_data, ops::rnn_relu_data, ops::gru_data)(input, batch_sizes, state.h, weights,
                                                                             o.bias(), o.num_layers(), o.dropout(),
                                                                             training, o.bidirectional())
               : pick(ops::rnn_tanh, ops::rnn_relu, ops::gru)(input, state.h, weights, o.bias(), o.num_layers(),
                                                              o.dropout(), training, o.bidirectional(), batch_first);
    return {output, {h, Tensor()}};
  }
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
// As `forward` returns it: h, or h and c.
template <class State>
State state_as(const RecurrentState& state) {
  if constexpr (std::is_same_v<State, Tensor>) {
    return state.h;
  } else {
    return {state.h, state.c};
  }
}

template <class Options>
detail::RNNOptionsBase options_base_of(const Options& o) {
  detail::RNNOptionsBase::rnn_options_base_mode_t mode = kLSTM;
  if constexpr (std::is_same_v<Options, GRUOptions>) mode = kGRU;
  if constexpr (requires { o.nonlinearity(); }) {
    if (enumtype::holds<enumtype::kTanh>(o.nonlinearity())) {
      mode = kRNN_TANH;
    } else {
      mode = kRNN_RELU;
    }
  }
  return detail::RNNOptionsBase(mode, o.input_size(), o.hidden_size())
      .num_layers(o.num_layers())
      .bias(o.bias())
      .batch_first(o.batch_first())
      .dropout(o.dropout())
      .bidirectional(o.bidirectional())
      .proj_size(projection_of(o));
}

}  // namespace

template <class Derived, class Options>
detail::RNNImplBase<Derived, Options>::RNNImplBase(const Options& options)
    : options(options), options_base(options_base_of(options)) {
  RNNImplBase::reset();
  if (options.dropout() > 0 && options.num_layers() == 1) {
    RUSH_WARN_ONCE_PER_CALLER(kName<Options>, ": dropout ", options.dropout(),
                              " does nothing in a single layer; it lies between layers");
  }
}

template <class Derived, class Options>
void detail::RNNImplBase<Derived, Options>::reset() {
  const Options& o = options;
  constexpr const char* name = kName<Options>;
  RUSH_CHECK_VALUE(o.input_size() > 0 && o.hidden_size() > 0 && o.num_layers() > 0, name, ": input size ",
                   o.input_size(), ", hidden size ", o.hidden_size(), " and layers ", o.num_layers(),
                   " must be positive");
  RUSH_CHECK_VALUE(o.dropout() >= 0 && o.dropout() <= 1, name,
                   ": dropout should be a number in range [0, 1] representing the probability of an element being "
                   "zeroed, got ",
                   o.dropout());
  const RecurrentLayers layers = layers_of(o);
  RUSH_CHECK_VALUE(layers.projection >= 0 && layers.projection < o.hidden_size(), name, ": proj_size ",
                   layers.projection, " must be smaller than the hidden size ", o.hidden_size());
  const int64_t gates = layers.gates() * o.hidden_size();
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    const int64_t input_size = layer == 0 ? o.input_size() : layers.output_size() * layers.directions();
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const std::string suffix = suffix_of(layer, direction == 1);
      this->register_parameter("weight_ih" + suffix, empty({gates, input_size}));
      this->register_parameter("weight_hh" + suffix, empty({gates, layers.output_size()}));
      if (o.bias()) {
        this->register_parameter("bias_ih" + suffix, empty(gates));
        this->register_parameter("bias_hh" + suffix, empty(gates));
      }
      if (layers.projection > 0)
        this->register_parameter("weight_hr" + suffix, empty({layers.projection, o.hidden_size()}));
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
  stream << detail::module_text(kName<Options>, "(input_size=", o.input_size(), ", hidden_size=", o.hidden_size(),
                                ", num_layers=", o.num_layers(), ", bias=", o.bias(), ", batch_first=", o.batch_first(),
                                ", dropout=", o.dropout(), ", bidirectional=", o.bidirectional(),
                                projection_of(o) > 0 ? detail::options_text(", proj_size=", projection_of(o)) : "",
                                ")");
}

template <class Derived, class Options>
std::tuple<Tensor, RecurrentState> detail::RNNImplBase<Derived, Options>::run(const Tensor& input,
                                                                              const std::optional<RecurrentState>& hx) {
  RUSH_CHECK_VALUE(input.dim() == 2 || input.dim() == 3, kName<Options>, ": Expected input to be 2D or 3D, got ",
                   input.dim(), "D instead, of shape ", input.sizes());
  const bool batched = input.dim() == 3, batch_first = batched && options.batch_first();
  const Tensor padded = batched ? input : input.unsqueeze(1);  // (T, N, in) or (N, T, in)
  RecurrentState state = hx ? *hx : zero_state(layers_of(options), padded.size(batch_first ? 0 : 1), padded);
  if (hx && !batched) state = map_state(state, [](const Tensor& t) { return t.unsqueeze(1); });
  auto [output, last] = run_layers(options, padded, Tensor(), state, all_weights(), this->is_training(), batch_first);
  if (batched) return {output, last};
  return {output.squeeze(1), map_state(last, [](const Tensor& t) { return t.squeeze(1); })};
}

template <class Derived, class Options>
std::tuple<PackedSequence, RecurrentState> detail::RNNImplBase<Derived, Options>::run(
    const PackedSequence& input, const std::optional<RecurrentState>& hx) {
  const Tensor sizes = input.batch_sizes();
  RUSH_CHECK_VALUE(sizes.numel() > 0, kName<Options>, ": the packed sequence has no steps");
  const int64_t batch = sizes[0].item<int64_t>();
  const RecurrentLayers layers = layers_of(options);
  const auto reorder = [](const RecurrentState& state, const Tensor& order) {
    if (!order.defined()) return state;
    return map_state(state, [&](const Tensor& t) { return t.index_select(1, order); });
  };
  if (hx) native::check_recurrent_state(kName<Options>, layers, hx->h, hx->c, batch);
  const RecurrentState state = hx ? reorder(*hx, input.sorted_indices()) : zero_state(layers, batch, input.data());
  auto [output, last] = run_layers(options, input.data(), sizes, state, all_weights(), this->is_training(), false);
  return {PackedSequence(output, sizes, input.sorted_indices(), input.unsorted_indices()),
          reorder(last, input.unsorted_indices())};
}

#define RUSH_RNN_BODY(Name, State)                                                                     \
  template class detail::RNNImplBase<Name##Impl, Name##Options>;                                       \
  std::tuple<Tensor, State> Name##Impl::forward(const Tensor& input, std::optional<State> hx) {        \
    const ModuleScope scope(*this);                                                                    \
    auto [output, last] = run(input, as_state(hx));                                                    \
    return {output, state_as<State>(last)};                                                            \
  }                                                                                                    \
  std::tuple<PackedSequence, State> Name##Impl::forward_with_packed_input(const PackedSequence& input, \
                                                                          std::optional<State> hx) {   \
    const ModuleScope scope(*this);                                                                    \
    auto [output, last] = run(input, as_state(hx));                                                    \
    return {output, state_as<State>(last)};                                                            \
  }
RUSH_RNN_BODY(RNN, Tensor)
RUSH_RNN_BODY(LSTM, LSTMImpl::State)
RUSH_RNN_BODY(GRU, Tensor)

template <class Derived, class Options>
detail::RNNCellImplBase<Derived, Options>::RNNCellImplBase(const Options& options)
    : options(options), options_base(options.input_size(), options.hidden_size(), options.bias(), gates_of(options)) {
  RNNCellImplBase::reset();
}

template <class Derived, class Options>
void detail::RNNCellImplBase<Derived, Options>::reset() {
  RUSH_CHECK_VALUE(options.input_size() > 0 && options.hidden_size() > 0, kName<Options>, "Cell: input size ",
                   options.input_size(), " and hidden size ", options.hidden_size(), " must be positive");
  const int64_t gates = gates_of(options) * options.hidden_size();
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
  detail::ModuleText text =
      detail::module_text(kName<Options>, "Cell(", options.input_size(), ", ", options.hidden_size());
  if (!options.bias()) text += detail::options_text(", bias=", false);
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
  RUSH_CHECK_VALUE(input.dim() == 1 || input.dim() == 2, kName<Options>, "Cell: Expected input to be 1D or 2D, got ",
                   input.dim(), "D instead, of shape ", input.sizes());
  RUSH_CHECK_VALUE(input.size(-1) == options.input_size(), kName<Options>,
                   "Cell: input has inconsistent input_size: got ", input.size(-1), " expected ", options.input_size());
  RecurrentState state;
  if (hx) {
    state = *hx;
  } else {
    DimVector sizes(input.sizes());
    sizes.back() = options.hidden_size();
    state.h = zeros(sizes, input.options());
    if (kHasCellState<Options>) state.c = state.h;
  }
  const auto b_ih = functional::optional_tensor(bias_ih), b_hh = functional::optional_tensor(bias_hh);
  if constexpr (kHasCellState<Options>) {
    const Tensor parts[] = {state.h, state.c};
    auto [h, c] = lstm_cell(input, parts, weight_ih, weight_hh, b_ih, b_hh);
    return {h, c};
  } else if constexpr (kIsGru<Options>) {
    return {gru_cell(input, state.h, weight_ih, weight_hh, b_ih, b_hh), Tensor()};
  } else {
    const auto& cell = mode_of(options) == RecurrentMode::Tanh ? ops::rnn_tanh_cell : ops::rnn_relu_cell;
    return {cell(input, state.h, weight_ih, weight_hh, b_ih, b_hh), Tensor()};
  }
}

#define RUSH_RNN_CELL_BODY(Name, State)                                     \
  template class detail::RNNCellImplBase<Name##Impl, Name##Options>;        \
  State Name##Impl::forward(const Tensor& input, std::optional<State> hx) { \
    const ModuleScope scope(*this);                                         \
    return state_as<State>(step(input, as_state(hx)));                      \
  }
RUSH_RNN_CELL_BODY(RNNCell, Tensor)
RUSH_RNN_CELL_BODY(LSTMCell, LSTMImpl::State)
RUSH_RNN_CELL_BODY(GRUCell, Tensor)

}  // namespace rush::nn
