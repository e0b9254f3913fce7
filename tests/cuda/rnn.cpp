// Recurrent layers on CUDA, where they run through cuDNN, against the same modules on the CPU.
#include <doctest/doctest.h>

#include <sstream>

#include "backends/cuda/devices.h"
#include "core/device/context.h"
#include "core/ops/nn/cudnn_rnn.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"

namespace {

using namespace rush;
using namespace rush::testing;
using namespace rush::nn;
using utils::rnn::PackedSequence;

constexpr int64_t kSteps = 5, kBatch = 3, kInput = 6, kHidden = 8;
// Of the packed sequences; not sorted.
const std::vector<int64_t> kLengths = {3, 5, 2};

bool has_cudnn_rnn(ScalarType dtype) {
  return cuda::is_available() && ops::cudnn_is_acceptable(ones({1}, TensorOptions(dtype).device(kCUDA)));
}

struct Precision {
  ScalarType dtype;
  double relative, absolute;
};
constexpr Precision kSingle = {kFloat32, 1e-4, 1e-5};
constexpr Precision kOthers[] = {{kFloat64, 1e-9, 1e-10}, {kFloat16, 5e-2, 5e-2}, {kBFloat16, 3e-1, 3e-1}};

void check_with_precision(const Tensor& got, const Tensor& expected, const Precision& precision) {
  REQUIRE(got.defined());
  REQUIRE(got.is_cuda());
  REQUIRE(got.sizes() == expected.sizes());
  CHECK(got.scalar_type() == precision.dtype);
  CHECK(got.detach().cpu().to(kFloat64).allclose(expected.detach(), precision.relative, precision.absolute));
}

// How a module is called.
struct Call {
  bool packed = false, batched = true, with_state = true;
};
const Call kPadded, kPacked{.packed = true}, kUnbatched{.batched = false}, kStateless{.with_state = false};

// Leaves of a call: input, h, c, on one device. c: LSTM only.
struct Leaves {
  Tensor input, h, c;

  Leaves to(const Precision& precision) const {
    const auto move = [&](const Tensor& t) {
      return t.defined() ? t.detach().to(precision.dtype).cuda().requires_grad_() : t;
    };
    return {move(input), move(h), move(c)};
  }
};

// Output, h and, of an LSTM, c.
template <class Module>
std::vector<Tensor> outputs_of(Module& module, const Leaves& leaves, const Call& call) {
  constexpr bool is_lstm = std::is_same_v<Module, LSTM>;
  const auto state = [&] {
    if constexpr (is_lstm) {
      return call.with_state ? std::optional(std::tuple(leaves.h, leaves.c)) : std::nullopt;
    } else {
      return call.with_state ? std::optional(leaves.h) : std::nullopt;
    }
  }();
  Tensor output;
  const auto result = [&](const auto& last) -> std::vector<Tensor> {
    if constexpr (is_lstm) {
      return {output, std::get<0>(last), std::get<1>(last)};
    } else {
      return {output, last};
    }
  };
  if (call.packed) {
    const PackedSequence packed = utils::rnn::pack_padded_sequence(
        leaves.input, tensor(ArrayRef<int64_t>(kLengths)), module->options.batch_first(), /*enforce_sorted=*/false);
    const auto [sequence, last] = module->forward_with_packed_input(packed, state);
    output = std::get<0>(utils::rnn::pad_packed_sequence(sequence, module->options.batch_first()));
    return result(last);
  }
  const auto [sequence, last] = module->forward(leaves.input, state);
  output = sequence;
  return result(last);
}

template <class Module>
Leaves leaves_of(Module& module, const Call& call) {
  const auto& o = module->options;
  int64_t projection = 0;
  if constexpr (std::is_same_v<Module, LSTM>) projection = o.proj_size();
  const int64_t cells = o.num_layers() * (o.bidirectional() ? 2 : 1);
  const auto leaf = [](const std::vector<int64_t>& sizes) { return randn(sizes, kFloat64).requires_grad_(); };
  const auto state = [&](int64_t size) { return call.batched ? leaf({cells, kBatch, size}) : leaf({cells, size}); };
  Leaves leaves;
  leaves.input = !call.batched     ? leaf({kSteps, kInput})
                 : o.batch_first() ? leaf({kBatch, kSteps, kInput})
                                   : leaf({kSteps, kBatch, kInput});
  if (!call.with_state) return leaves;
  leaves.h = state(projection > 0 ? projection : o.hidden_size());
  if (std::is_same_v<Module, LSTM>) leaves.c = state(o.hidden_size());
  return leaves;
}

// The sum of all outputs times fixed numbers, so that each has a gradient of its own.
Tensor loss_of(const std::vector<Tensor>& outputs, const std::vector<Tensor>& factors) {
  Tensor loss;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor term = (outputs[i] * factors[i].to(outputs[i].options())).sum();
    loss = loss.defined() ? loss + term : term;
  }
  return loss;
}

// Outputs with and without gradients, and the gradients of input, state and parameters, against the CPU's in float64.
template <class Module>
void check_module(Module module, const Call& call = kPadded, const Precision& precision = kSingle) {
  std::ostringstream description;
  module->pretty_print(description);
  INFO(description.str());
  CAPTURE(call.packed);
  module->to(kFloat64);
  Module twin = std::dynamic_pointer_cast<typename Module::ContainedType>(module->clone());
  twin->to(kCUDA, precision.dtype);
  const Leaves leaves = leaves_of(module, call), twins = leaves.to(precision);

  const std::vector<Tensor> expected = outputs_of(module, leaves, call);
  {
    const NoGradGuard no_grad;
    const std::vector<Tensor> inferred = outputs_of(twin, twins, call);
    for (size_t i = 0; i < expected.size(); ++i) check_with_precision(inferred[i], expected[i], precision);
  }
  const std::vector<Tensor> got = outputs_of(twin, twins, call);
  std::vector<Tensor> factors;
  for (size_t i = 0; i < expected.size(); ++i) {
    check_with_precision(got[i], expected[i], precision);
    factors.push_back(randn(expected[i].sizes(), kFloat64));
  }
  loss_of(expected, factors).backward();
  loss_of(got, factors).backward();
  check_with_precision(twins.input.grad(), leaves.input.grad(), precision);
  if (leaves.h.defined()) check_with_precision(twins.h.grad(), leaves.h.grad(), precision);
  if (leaves.c.defined()) check_with_precision(twins.c.grad(), leaves.c.grad(), precision);
  const std::vector<Tensor> parameters = module->parameters(), moved = twin->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) check_with_precision(moved[i].grad(), parameters[i].grad(), precision);
}

Tensor gpu_sequence() { return randn({kSteps, kBatch, kInput}, TensorOptions(kFloat32).device(kCUDA)); }

// Whether the tensor comes from cuDNN's operator, perhaps by way of views.
bool made_by_cudnn(const Tensor& output) {
  intrusive_ptr<Node> node = gradient_edge(output).node;
  while (node && node->name() != "CudnnRnnBackward") {
    node = node->next_edges().empty() ? intrusive_ptr<Node>() : node->next_edges()[0].node;
  }
  return static_cast<bool>(node);
}

}  // namespace

TEST_CASE("cuda: RNN, GRU and LSTM of all kinds" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  manual_seed(11);
  for (const int64_t layers : {1, 2}) {
    for (const bool both : {false, true}) {
      for (const bool bias : {true, false}) {
        const auto configured = [&](auto options) {
          return options.num_layers(layers).bidirectional(both).bias(bias).batch_first(both);
        };
        for (const Call& call : {kPadded, kPacked, kStateless}) {
          check_module(RNN(configured(RNNOptions(kInput, kHidden))), call);
          check_module(RNN(configured(RNNOptions(kInput, kHidden).nonlinearity(kReLU))), call);
          check_module(GRU(configured(GRUOptions(kInput, kHidden))), call);
          check_module(LSTM(configured(LSTMOptions(kInput, kHidden))), call);
          check_module(LSTM(configured(LSTMOptions(kInput, kHidden).proj_size(4))), call);
        }
      }
    }
  }
  check_module(GRU(kInput, kHidden), kUnbatched);
  check_module(LSTM(kInput, kHidden), kUnbatched);
}

TEST_CASE("cuda: recurrent layers of few units, where TF32 is allowed" * doctest::skip(!cuda::is_available())) {
  // Closer than TF32 comes, which is what the other layers take here.
  constexpr Precision kFewUnits = {kFloat32, 1e-4, 1e-4}, kTF32 = {kFloat32, 2e-2, 2e-2};
  manual_seed(13);
  for (const int64_t layers : {1, 2}) {
    for (const bool both : {false, true}) {
      const auto configured = [&](auto options) { return options.num_layers(layers).bidirectional(both); };
      check_module(RNN(configured(RNNOptions(kInput, kHidden))), kPadded, kFewUnits);
      check_module(RNN(configured(RNNOptions(kInput, 17).nonlinearity(kReLU))), kPadded, kFewUnits);
      check_module(GRU(configured(GRUOptions(kInput, kHidden))), kStateless, kFewUnits);
      check_module(LSTM(configured(LSTMOptions(kInput, 40))), kPadded, kFewUnits);
      check_module(LSTM(configured(LSTMOptions(kInput, 40))), kPacked, kTF32);
      check_module(LSTM(configured(LSTMOptions(kInput, kHidden).bias(false))), kPadded, kTF32);
      check_module(GRU(configured(GRUOptions(kInput, 129))), kPadded, kTF32);
    }
  }
  if (!has_cudnn_rnn(kFloat32)) return;
  // The backward pass is the forward pass's, whatever is allowed by then.
  GRU gru(kInput, kHidden);
  gru->to(kCUDA);
  const Tensor x = gpu_sequence().requires_grad_();
  const auto slope = [&](bool forbid) {
    const Tensor loss = std::get<0>(gru(x)).square().sum();
    std::optional<FullPrecision> precision;
    if (forbid) precision.emplace();
    return autograd::grad({loss}, {x})[0];
  };
  CHECK(slope(true).equal(slope(false)));
}

TEST_CASE("cuda: recurrent layers in other dtypes, and without cuDNN" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  manual_seed(12);
  const auto two_layers = LSTMOptions(kInput, kHidden).num_layers(2).bidirectional(true);
  for (const Precision& each : kOthers) check_module(LSTM(two_layers), kPadded, each);
  globalContext().setUserEnabledCuDNN(false);
  CHECK_FALSE(has_cudnn_rnn(kFloat32));
  check_module(LSTM(two_layers));
  check_module(GRU(kInput, kHidden), kPacked);
}

TEST_CASE("cuda: which recurrent layers run through cuDNN" * doctest::skip(!cuda::is_available())) {
  if (!has_cudnn_rnn(kFloat32)) return;
  const FullPrecision precision;
  GRU gru(kInput, kHidden);
  gru->to(kCUDA);
  CHECK(made_by_cudnn(std::get<0>(gru(gpu_sequence()))));
  gru->eval();  // gradients in evaluation too, unlike in PyTorch
  CHECK(made_by_cudnn(std::get<0>(gru(gpu_sequence()))));
  // An empty batch.
  CHECK(std::get<0>(gru(gpu_sequence().narrow(1, 0, 0))).sizes() == IntArrayRef({kSteps, 0, kHidden}));
  globalContext().setUserEnabledCuDNN(false);
  CHECK_FALSE(made_by_cudnn(std::get<0>(gru(gpu_sequence()))));
  CHECK_THROWS_AS(ops::_cudnn_rnn(gpu_sequence(), gru->all_weights(), 4, std::nullopt,
                                  zeros({1, kBatch, kHidden}, TensorOptions(kFloat32).device(kCUDA)), std::nullopt, 3,
                                  kHidden, 0, 1, false, 0.0, false, false, {}, std::nullopt),
                  NotImplementedError);
}

TEST_CASE("cuda: dropout between recurrent layers is the CPU's" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  LSTM module(LSTMOptions(kInput, kHidden).num_layers(3).dropout(0.5));
  LSTM twin = std::dynamic_pointer_cast<LSTMImpl>(module->clone());
  twin->to(kCUDA);
  const Tensor x = randn({kSteps, kBatch, kInput});
  const auto run = [](LSTM& lstm, const Tensor& input) {
    manual_seed(5);
    return std::get<0>(lstm(input));
  };
  const Tensor expected = run(module, x), got = run(twin, x.cuda());
  CHECK(got.cpu().allclose(expected, 1e-4, 1e-5));
  CHECK(run(twin, x.cuda()).allclose(got, 1e-5, 1e-6));
  CHECK_FALSE(std::get<0>(twin(x.cuda())).allclose(got, 1e-2, 1e-2));
  expected.sum().backward();
  got.sum().backward();
  for (size_t i = 0; i < module->parameters().size(); ++i) {
    check_with_precision(twin->parameters()[i].grad(), module->parameters()[i].grad().to(kFloat64), kSingle);
  }
}

TEST_CASE("cuda: cuDNN's gradients, again, in part, and of themselves" * doctest::skip(!cuda::is_available())) {
  if (!has_cudnn_rnn(kFloat32)) return;
  const FullPrecision precision;
  GRU gru(GRUOptions(kInput, kHidden).num_layers(2));
  gru->to(kCUDA);
  const Tensor x = gpu_sequence().requires_grad_();
  const auto weights = gru->parameters();
  const Tensor loss = std::get<0>(gru(x)).square().sum();
  const Tensors first = autograd::grad({loss}, {x, weights[0]}, {}, /*retain_graph=*/true);
  const Tensors again = autograd::grad({loss}, {x, weights[0]}, {}, true);
  for (size_t i = 0; i < 2; ++i) CHECK(again[i].allclose(first[i], 1e-5, 1e-6));
  // Through the last state alone.
  CHECK(autograd::grad({std::get<1>(gru(x)).sum()}, {x})[0].abs().sum().item<double>() > 0);
  // Of the input alone, with frozen weights.
  for (const Tensor& weight : weights) weight.requires_grad_(false);
  CHECK(autograd::grad({std::get<0>(gru(x)).square().sum()}, {x})[0].allclose(first[0], 1e-5, 1e-6));

  const Tensor slope = autograd::grad({std::get<0>(gru(x)).square().sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  CHECK_THROWS_WITH_AS(slope.sum().backward(), doctest::Contains("can be differentiated once only"),
                       NotImplementedError);
  globalContext().setUserEnabledCuDNN(false);
  const Tensor recorded = autograd::grad({std::get<0>(gru(x)).square().sum()}, {x}, {}, true, true)[0];
  CHECK(autograd::grad({recorded.sum()}, {x})[0].defined());
}
