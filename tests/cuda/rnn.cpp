// cuDNN's recurrent layers against nn's on the CPU.
#include "backends/cuda/dnn/rnn.h"

#include <doctest/doctest.h>

#include "core/context.h"
#include "core/cuda.h"
#include "rushlight.h"

namespace {

using namespace rush;
using namespace rush::nn;

constexpr int64_t kSteps = 5, kBatch = 3, kInput = 6, kHidden = 8;

Tensor on_gpu(const Tensor& t) { return t.defined() ? t.detach().to(kFloat32).cuda() : Tensor(); }

void check_close(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.is_cuda());
  REQUIRE(got.sizes() == expected.sizes());
  CHECK(got.cpu().to(kFloat64).allclose(expected.detach(), 1e-4, 1e-5));
}

// One problem: forward with and without training, and all gradients.
template <class Module>
void check_module(Module module, const cuda::RnnLayers& layers) {
  CAPTURE(static_cast<int>(layers.mode));
  CAPTURE(layers.layers);
  CAPTURE(layers.bidirectional);
  CAPTURE(layers.projection);
  if (!cuda::dnn_has_rnn(kFloat32)) return;
  module->to(kFloat64);
  const bool has_cell = layers.mode == cuda::RnnMode::Lstm;
  const int64_t cells = layers.layers * layers.directions();
  const Tensor input = randn({kSteps, kBatch, kInput}, kFloat64).requires_grad_();
  const Tensor h = randn({cells, kBatch, layers.output_size()}, kFloat64).requires_grad_();
  const Tensor c = has_cell ? randn({cells, kBatch, kHidden}, kFloat64).requires_grad_() : Tensor();
  Tensor output, last_h, last_c;
  if constexpr (std::is_same_v<Module, LSTM>) {
    auto [out, state] = module->forward(input, std::tuple(h, c));
    output = out;
    std::tie(last_h, last_c) = state;
  } else {
    std::tie(output, last_h) = module->forward(input, h);
  }
  const std::vector<Tensor> parameters = module->parameters();
  std::vector<Tensor> weights;
  for (const Tensor& parameter : parameters) weights.push_back(on_gpu(parameter));
  const cuda::RnnInput in{on_gpu(input), {}, on_gpu(h), on_gpu(c)};
  const cuda::RnnOutput inferred = cuda::dnn_rnn(layers, in, weights, false);
  check_close(inferred.data, output);
  const cuda::RnnOutput got = cuda::dnn_rnn(layers, in, weights, true);
  check_close(got.data, output);
  check_close(got.h, last_h);
  if (has_cell) check_close(got.c, last_c);

  const Tensor grad = randn(output.sizes(), kFloat64), grad_h = randn(last_h.sizes(), kFloat64);
  const Tensor grad_c = has_cell ? randn(last_c.sizes(), kFloat64) : Tensor();
  Tensor loss = output.mul(grad).sum().add(last_h.mul(grad_h).sum());
  if (has_cell) loss = loss.add(last_c.mul(grad_c).sum());
  loss.backward();
  const cuda::RnnGradients grads =
      cuda::dnn_rnn_backward(layers, in, weights, got, on_gpu(grad), on_gpu(grad_h), on_gpu(grad_c));
  check_close(grads.data, input.grad());
  check_close(grads.h, h.grad());
  if (has_cell) check_close(grads.c, c.grad());
  REQUIRE(grads.weights.size() == parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) check_close(grads.weights[i], parameters[i].grad());
}

// Recurrent layers in plain float32; the default afterwards.
struct FullPrecision {
  FullPrecision() { globalContext().setAllowTF32CuDNN(false); }
  ~FullPrecision() { globalContext().setAllowTF32CuDNN(true); }
};

}  // namespace

TEST_CASE("cuda: cuDNN's RNN, GRU and LSTM" * doctest::skip(!cuda::is_available())) {
  const FullPrecision precision;
  manual_seed(11);
  for (const int64_t layers : {1, 2}) {
    for (const bool both : {false, true}) {
      for (const bool bias : {true, false}) {
        const auto problem = [&](cuda::RnnMode mode) {
          return cuda::RnnLayers{mode, kInput, kHidden, 0, layers, both, bias};
        };
        const auto configured = [&](auto options) { return options.num_layers(layers).bidirectional(both).bias(bias); };
        check_module(RNN(configured(RNNOptions(kInput, kHidden))), problem(cuda::RnnMode::Tanh));
        check_module(GRU(configured(GRUOptions(kInput, kHidden))), problem(cuda::RnnMode::Gru));
        check_module(LSTM(configured(LSTMOptions(kInput, kHidden))), problem(cuda::RnnMode::Lstm));
      }
    }
  }
  const cuda::RnnLayers projected{cuda::RnnMode::Lstm, kInput, kHidden, 4, 2, true, true};
  check_module(LSTM(LSTMOptions(kInput, kHidden).num_layers(2).bidirectional(true).proj_size(4)), projected);
}

TEST_CASE("cuda: cuDNN's GRU over packed sequences" *
          doctest::skip(!cuda::is_available() || !cuda::dnn_has_rnn(kFloat32))) {
  const FullPrecision precision;
  GRU module(GRUOptions(kInput, kHidden));
  module->to(kFloat64);
  const std::vector<int64_t> lengths = {5, 3, 2};
  const auto packed =
      utils::rnn::pack_padded_sequence(randn({kSteps, kBatch, kInput}, kFloat64), tensor(ArrayRef<int64_t>(lengths)));
  const auto [output, last] = module->forward_with_packed_input(packed);
  std::vector<Tensor> weights;
  for (const Tensor& parameter : module->parameters()) weights.push_back(on_gpu(parameter));
  const std::vector<int64_t> batch_sizes = {3, 3, 2, 1, 1};
  const cuda::RnnLayers layers{cuda::RnnMode::Gru, kInput, kHidden, 0, 1, false, true};
  const Tensor start = zeros({1, kBatch, kHidden}, TensorOptions(kFloat32).device(kCUDA));
  const cuda::RnnOutput got = cuda::dnn_rnn(layers, {on_gpu(packed.data()), batch_sizes, start, {}}, weights, false);
  check_close(got.data, output.data());
  check_close(got.h, last);
}
