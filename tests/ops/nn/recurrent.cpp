// Recurrent layers as operators: what nn's modules leave open, and how cuDNN's operator is differentiated. PyTorch's
// numbers are in tests/nn/recurrent.cpp, cuDNN's in tests/cuda/rnn.cpp.
#include "core/ops/nn/recurrent.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/ops/nn/cudnn_rnn.h"
#include "core/ops/nn/recurrent_layer.h"
#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

using namespace rush;
using rush::testing::check_gradients;

namespace {

constexpr int64_t kSteps = 4, kBatch = 2, kInput = 3, kHidden = 2;

// Parameters of `cells` layers and directions whose inputs all have the hidden size, but for those of the first layer.
std::vector<Tensor> make_params(int64_t gates, int64_t layers, int64_t directions, bool biases,
                                int64_t projection = 0) {
  std::vector<Tensor> params;
  const int64_t output = projection > 0 ? projection : kHidden;
  for (int64_t cell = 0; cell < layers * directions; ++cell) {
    params.push_back(randn({gates * kHidden, cell < directions ? kInput : directions * output}, kFloat64));
    params.push_back(randn({gates * kHidden, output}, kFloat64));
    if (biases) {
      params.push_back(randn({gates * kHidden}, kFloat64));
      params.push_back(randn({gates * kHidden}, kFloat64));
    }
    if (projection > 0) params.push_back(randn({projection, kHidden}, kFloat64));
  }
  return params;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// Row `gate * kHidden + j` of w x + b, b where there is one.
double affine(const Tensor& w, const std::optional<Tensor>& b, const Tensor& x, int64_t row) {
  double sum = b ? (*b)[row].item<double>() : 0;
  for (int64_t k = 0; k < x.size(0); ++k) sum += w[row][k].item<double>() * x[k].item<double>();
  return sum;
}

}  // namespace

// Where a gradient is asked for, cells consist of public operators; else a kernel may compute all gates in one pass.
TEST_CASE("cells give the same with and without a gradient") {
  manual_seed(9);
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : dtype == kFloat16 ? 5e-3 : 5e-2;
    for (const DimVector& rows : {DimVector{}, {0}, {1}, {7}}) {
      for (const int64_t hidden : {1, 5, 130}) {
        CAPTURE(dtype);
        CAPTURE(rows);
        CAPTURE(hidden);
        const auto random = [&](IntArrayRef sizes) { return randn(sizes, kFloat64).mul(0.3).to(dtype); };
        const auto with_rows = [&](int64_t width) {  // neighbours of a row lie two apart
          DimVector sizes(rows);
          sizes.push_back(2 * width);
          return random(sizes).slice(-1, 0, 2 * width, 2);
        };
        const Tensor x = with_rows(3), h = with_rows(hidden), c = with_rows(hidden);
        const auto run = [&](bool recorded) {
          manual_seed(4);
          const auto parameter = [&](IntArrayRef sizes) { return random(sizes).requires_grad_(recorded); };
          const Tensor w = parameter({4 * hidden, 3}), u = parameter({4 * hidden, hidden}), b = parameter({4 * hidden});
          const auto gru = [&](const Tensor& t) { return t.narrow(0, 0, 3 * hidden); };
          const auto [next_h, next_c] = lstm_cell(x, {h, c}, w, u, b, b);
          return std::vector<Tensor>{next_h, next_c, gru_cell(x, h, gru(w), gru(u), gru(b), gru(b))};
        };
        const std::vector<Tensor> recorded = run(true), plain = run(false);
        for (size_t i = 0; i < plain.size(); ++i) {
          CHECK(recorded[i].requires_grad());
          CHECK_FALSE(plain[i].requires_grad());
          CHECK(plain[i].scalar_type() == dtype);
          CHECK(allclose(plain[i].to(kFloat64), recorded[i].detach().to(kFloat64), tolerance, tolerance));
        }
      }
    }
  }
}

TEST_CASE("lstm_gates and gru_gates: by themselves, and bad input") {
  const Tensor x = randn({2, 12}, kFloat64), y = randn({2, 12}, kFloat64), c = randn({2, 3}, kFloat64);
  const auto [h, next] = ops::lstm_gates(x, y, c);
  const Tensor sums = x + y;
  const auto gate = [&](int64_t i) { return sums.narrow(1, 3 * i, 3); };
  const Tensor expected = gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh();
  CHECK(allclose(next, expected));
  CHECK(allclose(h, gate(3).sigmoid() * expected.tanh()));
  CHECK_THROWS_AS(ops::gru_gates(x, y, c), ValueError);
  CHECK_THROWS_AS(ops::lstm_gates(x, y[0], c), ValueError);
  CHECK_THROWS_AS(ops::lstm_gates(x, y.to(kFloat32), c), TypeError);
  const Tensor grown = std::get<0>(ops::lstm_gates(x.detach().requires_grad_(), y, c));
  CHECK_THROWS_AS(grown.sum().backward(), NotImplementedError);
}

TEST_CASE("the cells' formulas") {
  manual_seed(3);
  for (const bool biases : {true, false}) {
    const Tensor x = randn({kInput}, kFloat64), h = randn({kHidden}, kFloat64), c = randn({kHidden}, kFloat64);
    const auto given = [&](const std::vector<Tensor>& p, size_t i) {
      return biases ? std::optional(p[i]) : std::nullopt;
    };
    const auto gate = [&](const std::vector<Tensor>& p, int64_t row) {
      return affine(p[0], given(p, 2), x, row) + affine(p[1], given(p, 3), h, row);
    };
    const std::vector<Tensor> rnn = make_params(1, 1, 1, biases);
    const Tensor tanh_h = rnn_tanh_cell(x, h, rnn[0], rnn[1], given(rnn, 2), given(rnn, 3));
    const Tensor relu_h = rnn_relu_cell(x, h, rnn[0], rnn[1], given(rnn, 2), given(rnn, 3));
    const std::vector<Tensor> g = make_params(3, 1, 1, biases);
    const Tensor gru_h = gru_cell(x, h, g[0], g[1], given(g, 2), given(g, 3));
    const std::vector<Tensor> l = make_params(4, 1, 1, biases);
    const auto [lstm_h, lstm_c] = lstm_cell(x, {h, c}, l[0], l[1], given(l, 2), given(l, 3));
    for (int64_t j = 0; j < kHidden; ++j) {
      const auto is = [&](const Tensor& got, double expected) {
        CHECK(got[j].item<double>() == doctest::Approx(expected).epsilon(1e-12));
      };
      is(tanh_h, std::tanh(gate(rnn, j)));
      is(relu_h, std::max(gate(rnn, j), 0.0));
      const double r = sigmoid_of(gate(g, j)), z = sigmoid_of(gate(g, kHidden + j));
      const int64_t row = 2 * kHidden + j;
      const double n = std::tanh(affine(g[0], given(g, 2), x, row) + r * affine(g[1], given(g, 3), h, row));
      is(gru_h, (1 - z) * n + z * h[j].item<double>());
      const double next = sigmoid_of(gate(l, kHidden + j)) * c[j].item<double>() +
                          sigmoid_of(gate(l, j)) * std::tanh(gate(l, 2 * kHidden + j));
      is(lstm_c, next);
      is(lstm_h, sigmoid_of(gate(l, 3 * kHidden + j)) * std::tanh(next));
    }
  }
}

TEST_CASE("layers and directions are cells, one after the other") {
  manual_seed(4);
  const std::vector<Tensor> p = make_params(3, 2, 2, true);
  const Tensor x = randn({kBatch, kSteps, kInput}, kFloat64), h0 = randn({4, kBatch, kHidden}, kFloat64);
  const auto [output, last] =
      gru(x, h0, p, true, 2, 0.5, /*train=*/false, /*bidirectional=*/true, /*batch_first=*/true);
  Tensor input = x.transpose(0, 1);
  for (int64_t layer = 0; layer < 2; ++layer) {
    std::vector<Tensor> directions;
    for (int64_t direction = 0; direction < 2; ++direction) {
      const int64_t cell = 2 * layer + direction;
      const Tensor* w = p.data() + 4 * cell;
      Tensor h = h0[cell];
      std::vector<Tensor> steps(kSteps);
      for (int64_t i = 0; i < kSteps; ++i) {
        const int64_t t = direction == 1 ? kSteps - 1 - i : i;
        h = steps[static_cast<size_t>(t)] = gru_cell(input[t], h, w[0], w[1], w[2], w[3]);
      }
      directions.push_back(stack(steps));
      CHECK(last[cell].allclose(h, 1e-12, 1e-12));
    }
    input = cat(directions, -1);
  }
  CHECK(output.transpose(0, 1).allclose(input, 1e-12, 1e-12));
}

TEST_CASE("what is dropped between layers depends on the seed alone") {
  const std::vector<Tensor> p = make_params(1, 2, 1, true);
  const TensorList first = TensorList(p).slice(0, 4), second = TensorList(p).slice(4, 4);
  const Tensor x = randn({kSteps, kBatch, kInput}, kFloat64), h = zeros({2, kBatch, kHidden}, kFloat64);
  manual_seed(5);
  const Tensor output = std::get<0>(rnn_tanh(x, h, p, true, 2, 0.5, true, false, false));
  manual_seed(5);
  const Tensor between =
      dropout(std::get<0>(rnn_tanh(x, h[0].unsqueeze(0), first, true, 1, 0.5, true, false, false)), 0.5, true);
  CHECK(output.equal(std::get<0>(rnn_tanh(between, h[0].unsqueeze(0), second, true, 1, 0.5, true, false, false))));
}

TEST_CASE("recurrent layers on the CPU can be differentiated twice") {
  manual_seed(6);
  const Tensor x = randn({2, 1, kInput}, kFloat64).requires_grad_(), h = randn({1, 1, 1}, kFloat64).requires_grad_();
  const Tensor c = randn({1, 1, kHidden}, kFloat64).requires_grad_();
  Tensors inputs = {x, h, c};
  for (const Tensor& weight : make_params(4, 1, 1, false, /*projection=*/1)) inputs.push_back(weight.requires_grad_());
  const auto run = [](const Tensors& in) {
    const auto [output, last_h, last_c] =
        lstm(in[0], TensorList(in).slice(1, 2), TensorList(in).slice(3), false, 1, 0, true, false, false);
    return Tensors{output, last_h, last_c};
  };
  check_gradients(run, inputs);
}

namespace {

// A layer in one direction over packed sequences: its inputs are input, weights, h, and of an LSTM c.
struct LayerCase {
  RecurrentMode mode;
  bool biases, projected, reverse;
  DimVector batch_sizes;
  int64_t hidden;

  bool is_lstm() const { return mode == RecurrentMode::Lstm; }
  Tensors inputs(ScalarType dtype = kFloat64) const {
    const int64_t gates = RecurrentLayers{mode}.gates() * hidden, size = projected ? hidden - 1 : hidden;
    const int64_t rows = std::accumulate(batch_sizes.begin(), batch_sizes.end(), int64_t(0)), batch = batch_sizes[0];
    Tensors in = {randn({rows, kInput}, kFloat64), randn({gates, kInput}, kFloat64), randn({gates, size}, kFloat64)};
    if (biases) in.insert(in.end(), {randn({gates}, kFloat64), randn({gates}, kFloat64)});
    if (projected) in.push_back(randn({size, hidden}, kFloat64));
    in.push_back(randn({1, batch, size}, kFloat64));
    if (is_lstm()) in.push_back(randn({1, batch, hidden}, kFloat64));
    for (Tensor& t : in) t = (t * 0.4).to(dtype).requires_grad_();
    return in;
  }
  Tensors run(const Tensors& in, bool by_operators) const {
    const size_t states = is_lstm() ? 2 : 1;
    const TensorList weights = TensorList(in).slice(1, in.size() - 1 - states);
    const Tensor h = in[in.size() - states], c = is_lstm() ? in.back() : Tensor();
    if (by_operators) {
      const auto [output, h_n, c_n] =
          native::recurrent_layer_by_operators(in[0], weights, h, c, mode, reverse, batch_sizes);
      return is_lstm() ? Tensors{output, h_n, c_n} : Tensors{output, h_n};
    }
    const auto [output, h_n, c_n, reserve] =
        ops::recurrent_layer(in[0], weights, h, is_lstm() ? std::optional(c) : std::nullopt, static_cast<int64_t>(mode),
                             reverse, GradMode::is_enabled(), batch_sizes);
    return is_lstm() ? Tensors{output, h_n, c_n} : Tensors{output, h_n};
  }
};

// Sequences that end at different steps, and more units than fill a panel of 64 columns.
std::vector<LayerCase> layer_cases(const DimVector& batch_sizes = {5, 5, 4, 4, 3, 2, 1, 1, 1}, int64_t hidden = 67) {
  using enum RecurrentMode;
  std::vector<LayerCase> cases;
  for (const bool reverse : {false, true}) {
    for (const bool biases : {false, true}) {
      for (const RecurrentMode mode : {Relu, Tanh, Lstm, Gru}) {
        cases.push_back({mode, biases, false, reverse, batch_sizes, hidden});
      }
      cases.push_back({Lstm, biases, true, reverse, batch_sizes, hidden});
    }
  }
  return cases;
}

Tensors gradients(const Tensors& results, const Tensors& inputs, bool create_graph = false) {
  manual_seed(9);
  Tensors grads;
  for (const Tensor& t : results) grads.push_back(randn_like(t));
  return autograd::grad(results, inputs, grads, create_graph, create_graph, true);
}

void check_all_close(const Tensors& got, const Tensors& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].defined() == expected[i].defined());
    if (got[i].defined()) CHECK(got[i].allclose(expected[i], tolerance, tolerance, /*equal_nan=*/true));
  }
}

}  // namespace

TEST_CASE("a layer over all steps is its steps one by one, and so are its gradients") {
  manual_seed(7);
  for (const LayerCase& layer : layer_cases()) {
    CAPTURE(static_cast<int>(layer.mode));
    CAPTURE(layer.reverse);
    const Tensors in = layer.inputs(), once = layer.run(in, false), by_steps = layer.run(in, true);
    check_all_close(once, by_steps, 1e-12);
    check_all_close(gradients(once, in), gradients(by_steps, in), 1e-10);
    check_all_close(gradients(layer.run(in, false), in, /*create_graph=*/true), gradients(layer.run(in, true), in),
                    1e-10);
    // Where only the last state is used, only the output, and only some inputs ask.
    for (size_t i = 0; i < once.size(); ++i) {
      const auto one = [&](bool by_operators) {
        return gradients({layer.run(in, by_operators)[i]}, {in[0], in[2], in.back()});
      };
      check_all_close(one(false), one(true), 1e-10);
    }
    const NoGradGuard guard;
    const Tensors inference = layer.run(in, false);
    for (size_t i = 0; i < once.size(); ++i) CHECK(inference[i].equal(once[i]));
  }
}

TEST_CASE("a layer over all steps can be differentiated twice") {
  manual_seed(8);
  for (const LayerCase& layer : layer_cases({2, 1}, 2)) {
    CAPTURE(static_cast<int>(layer.mode));
    check_gradients([&](const Tensors& in) { return layer.run(in, false); }, layer.inputs());
  }
}

TEST_CASE("a layer over all steps rounds 16-bit numbers as its steps do, and keeps NaN where they do") {
  manual_seed(10);
  for (const LayerCase& layer : layer_cases({3, 3, 2, 2, 2, 1, 1, 1}, 17)) {
    CAPTURE(static_cast<int>(layer.mode));
    for (const ScalarType dtype : {kBFloat16, kFloat16}) {
      if (layer.mode == RecurrentMode::Relu) continue;  // the rounding of a sum may decide its sign
      const Tensors in = layer.inputs(dtype), once = layer.run(in, false), by_steps = layer.run(in, true);
      check_all_close(once, by_steps, dtype == kFloat16 ? 0.005 : 0.04);
      check_all_close(gradients(once, in), gradients(by_steps, in), dtype == kFloat16 ? 0.02 : 0.15);
    }
    Tensors in = layer.inputs();
    in[0] = in[0].detach().clone();
    in[0][4].fill_(std::nan(""));  // at the second step, of one sequence
    in[0].requires_grad_();
    const Tensors once = layer.run(in, false), by_steps = layer.run(in, true);
    CHECK(once[0].isnan().any().item<bool>());
    check_all_close(once, by_steps, 1e-12);
    check_all_close(gradients(once, in), gradients(by_steps, in), 1e-10);
  }
}

TEST_CASE("one tensor may be both states of an LSTM") {
  manual_seed(11);
  const LayerCase layer{RecurrentMode::Lstm, true, false, false, {2, 2, 1}, 3};
  Tensors in = layer.inputs();
  in.pop_back();
  const auto shared = [&](bool by_operators, bool create_graph) {
    Tensors both = in;
    both.push_back(in.back());
    return gradients(layer.run(both, by_operators), in, create_graph);
  };
  check_all_close(shared(false, false), shared(true, false), 1e-12);
  check_all_close(shared(false, true), shared(true, false), 1e-12);
}

TEST_CASE("a layer over all steps refuses what does not fit, and empty batches go by steps") {
  const LayerCase layer{RecurrentMode::Gru, true, false, false, {2, 2, 1}, 3};
  const Tensors in = layer.inputs();
  const TensorList weights = TensorList(in).slice(1, 4);
  const auto call = [&](const Tensor& input, const Tensor& h, int64_t mode, IntArrayRef sizes) {
    return ops::recurrent_layer(input, weights, h, std::nullopt, mode, false, true, sizes);
  };
  const Tensor reserve = std::get<3>(call(in[0], in[5], 3, {2, 2, 1}));
  CHECK_THROWS_AS(call(in[0], in[5], 4, {2, 2, 1}), ValueError);
  CHECK_THROWS_AS(call(in[0], in[5], 2, {2, 2, 1}), ValueError);
  CHECK_THROWS_AS(call(in[0], in[5], 3, {}), ValueError);
  CHECK_THROWS_AS(call(in[0], in[5], 3, {2, 2, 2}), ValueError);
  CHECK_THROWS_AS(call(in[0], in[5][0], 3, {2, 2, 1}), ValueError);
  CHECK_THROWS_AS(call(in[0].to(kFloat32), in[5], 3, {2, 2, 1}), TypeError);
  const NoGradGuard guard;
  const auto back = [&](const Tensor& grad_output, const Tensor& reserved) {
    return ops::recurrent_layer_backward(grad_output, std::nullopt, std::nullopt, in[0], weights, in[5], std::nullopt,
                                         reserved, 3, false, {2, 2, 1}, {true, true});
  };
  CHECK(std::get<0>(back(ones({5, 3}, kFloat64), reserve)).sizes() == IntArrayRef({5, kInput}));
  CHECK_THROWS_AS(back(ones({5, 2}, kFloat64), reserve), ValueError);
  CHECK_THROWS_AS(back(ones({5, 3}), reserve), TypeError);
  CHECK_THROWS_AS(back(ones({5, 3}, kFloat64), reserve[0]), ValueError);
  CHECK_THROWS_AS(back(ones({5, 3}, kFloat64), Tensor()), ValueError);

  const std::vector<Tensor> params = make_params(3, 2, 2, true);
  const auto [output, h] = gru(zeros({kSteps, 0, kInput}, kFloat64), zeros({4, 0, kHidden}, kFloat64), params, true, 2,
                               0, true, true, false);
  CHECK(output.sizes() == IntArrayRef({kSteps, 0, 2 * kHidden}));
  CHECK(h.sizes() == IntArrayRef({4, 0, kHidden}));
}

TEST_CASE("recurrent operators check what they get") {
  const std::vector<Tensor> p = make_params(3, 1, 1, true), q = make_params(4, 1, 1, true, 1);
  const Tensor x = ones({kSteps, kBatch, kInput}, kFloat64), h = ones({1, kBatch, kHidden}, kFloat64);
  const Tensor data = ones({5, kInput}, kFloat64), running = tensor({2, 2, 1});
  const auto call = [&](const Tensor& input, const Tensor& state, TensorList params, bool biases = true,
                        int64_t layers = 1, double dropout = 0) {
    return gru(input, state, params, biases, layers, dropout, true, false, false);
  };
  CHECK(std::get<0>(call(x, h, p)).sizes() == IntArrayRef({kSteps, kBatch, kHidden}));
  CHECK_THROWS_AS(call(x[0], h, p), ValueError);
  CHECK_THROWS_AS(call(x.narrow(0, 0, 0), h, p), ValueError);
  CHECK_THROWS_AS(call(x.narrow(2, 0, 2), h, p), ValueError);
  CHECK_THROWS_AS(call(x, h[0], p), ValueError);
  CHECK_THROWS_AS(call(x, Tensor(), p), ValueError);
  CHECK_THROWS_AS(call(x, h, p, false), ValueError);
  CHECK_THROWS_AS(call(x, h, p, true, 2), ValueError);
  CHECK_THROWS_AS(call(x, h, p, true, 0), ValueError);
  CHECK_THROWS_AS(call(x, h, p, true, int64_t{1} << 62), ValueError);
  CHECK_THROWS_AS(call(x, h, p, true, 1, 1.5), ValueError);
  CHECK_THROWS_AS(call(x, h, {p[0], p[1], p[2], p[2].narrow(0, 0, 5)}), ValueError);
  CHECK_THROWS_AS(call(x, h, {p[0].narrow(0, 0, 1), p[1], p[2], p[3]}), ValueError);
  CHECK_THROWS_AS(call(x, h.to(kFloat32), p), TypeError);
  CHECK_THROWS_AS(call(x.to(kFloat32), h, p), TypeError);
  CHECK_THROWS_AS(gru(data, tensor({2, 1}), h, p, true, 1, 0, true, false), ValueError);
  CHECK_THROWS_AS(gru(data, tensor({2, 3}), h, p, true, 1, 0, true, false), ValueError);
  CHECK_THROWS_AS(gru(data, running.to(kFloat32), h, p, true, 1, 0, true, false), ValueError);
  CHECK_THROWS_AS(gru(data, running.to(kMeta), h, p, true, 1, 0, true, false), ValueError);
  CHECK_THROWS_AS(lstm(x, {h}, q, true, 1, 0, true, false, false), ValueError);
  CHECK_THROWS_AS(lstm(x, {h, h}, q, true, 1, 0, true, false, false), ValueError);  // h has the projection's size
  CHECK_THROWS_AS(gru_cell(x[0], h[0], p[0].narrow(0, 0, 2), p[1]), ValueError);
  CHECK_THROWS_AS(gru_cell(x[0], h[0][0], p[0], p[1]), ValueError);
  CHECK_THROWS_AS(lstm_cell(x[0], {h[0]}, q[0], q[1]), ValueError);
}

// ---- cuDNN's operator, whose kernel only a GPU has ----

namespace {

// What the kernels below were asked for.
struct Asked {
  bool train = false, weights_too = false;
  int forwards = 0;
} asked;

// Stand in for cuDNN's kernels: outputs are ones, gradients numbers that tell them apart.
struct StandIn {
  StandIn() {
    asked = {};
    kernels::cudnn_rnn.set(
        kCPU, [](RecurrentOutput& output, const RecurrentLayers&, const RecurrentInput& input, TensorList, bool train) {
          asked.train = train;
          ++asked.forwards;
          for (const Tensor& t : {output.data, output.h, output.c}) {
            if (t.defined()) t.fill_(1);
          }
          output.weights = ones({7}, input.data.options());
          if (train) output.reserve = ones({7}, kUInt8);
        });
    kernels::cudnn_rnn_backward.set(
        kCPU, [](RecurrentGradients& grads, const RecurrentLayers&, const RecurrentInput&, TensorList weights,
                 const RecurrentOutput& output, const RecurrentOutput& grad, bool weights_too) {
          asked.weights_too = weights_too;
          CHECK(output.reserve.defined());
          CHECK(output.weights.defined());
          CHECK(grad.data.defined());
          CHECK_FALSE(grad.h.defined());
          grads.data.fill_(10);
          grads.h.fill_(20);
          if (grads.c.defined()) grads.c.fill_(30);
          if (!weights_too) return;
          for (size_t i = 0; i < weights.size(); ++i) grads.weights.push_back(full_like(weights[i], 40.0 + double(i)));
        });
  }
  ~StandIn() {
    kernels::cudnn_rnn.set(kCPU, nullptr);
    kernels::cudnn_rnn_backward.set(kCPU, nullptr);
  }
};

Tensor cudnn_lstm(const Tensor& x, const Tensor& h, const Tensor& c, TensorList params, bool train = true,
                  bool batch_first = false, double dropout_p = 0) {
  return std::get<0>(ops::_cudnn_rnn(x, params, 4, std::nullopt, h, c, 2, kHidden, 0, 1, batch_first, dropout_p, train,
                                     false, {}, std::nullopt));
}

}  // namespace

TEST_CASE("the gradients of _cudnn_rnn go to their inputs, once") {
  const StandIn stand_in;
  const Tensor x = ones({kSteps, kBatch, kInput}).requires_grad_(), h = ones({1, kBatch, kHidden}).requires_grad_();
  const Tensor c = ones({1, kBatch, kHidden}).requires_grad_();
  std::vector<Tensor> p;
  for (const Tensor& weight : make_params(4, 1, 1, true)) p.push_back(weight.to(kFloat32).requires_grad_());
  const Tensor output = cudnn_lstm(x, h, c, p);
  CHECK(asked.train);
  output.sum().backward({}, /*retain_graph=*/true);
  CHECK(asked.weights_too);
  CHECK(x.grad().eq(10).all().item<bool>());
  CHECK(h.grad().eq(20).all().item<bool>());
  CHECK(c.grad().eq(30).all().item<bool>());
  for (size_t i = 0; i < p.size(); ++i) CHECK(p[i].grad().eq(40 + static_cast<int64_t>(i)).all().item<bool>());
  output.sum().backward();
  CHECK(h.grad().eq(40).all().item<bool>());

  const Tensor slope = autograd::grad({cudnn_lstm(x, h, c, p).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  CHECK_THROWS_WITH_AS(slope.sum().backward(), doctest::Contains("can be differentiated once only"),
                       NotImplementedError);
  for (const Tensor& weight : p) weight.requires_grad_(false);
  CHECK(autograd::grad({cudnn_lstm(x, h, c, p).sum()}, {c})[0].eq(30).all().item<bool>());
  CHECK_FALSE(asked.weights_too);
  CHECK_THROWS_AS(cudnn_lstm(x, h, c, p, /*train=*/false).sum().backward(), ValueError);
}

TEST_CASE("_cudnn_rnn checks what it gets, and is for CUDA") {
  const std::vector<Tensor> p = make_params(4, 1, 1, true);
  const Tensor x = ones({kSteps, kBatch, kInput}, kFloat64), h = ones({1, kBatch, kHidden}, kFloat64);
  CHECK_FALSE(ops::cudnn_is_acceptable(x));
  CHECK_THROWS_AS(cudnn_lstm(x, h, h, p), NotImplementedError);
  const auto meta = [](const Tensor& t) { return t.to(kMeta); };
  std::vector<Tensor> shapes;
  for (const Tensor& weight : p) shapes.push_back(meta(weight));
  CHECK(cudnn_lstm(meta(x), meta(h), meta(h), shapes).sizes() == IntArrayRef({kSteps, kBatch, kHidden}));
  const StandIn stand_in;
  CHECK_THROWS_AS(cudnn_lstm(x, h, h, p, true, true), NotImplementedError);
  CHECK_THROWS_AS(cudnn_lstm(x, h, h, p, true, false, 0.5), NotImplementedError);
  CHECK_THROWS_AS(cudnn_lstm(x.narrow(1, 0, 0), h.narrow(1, 0, 0), h.narrow(1, 0, 0), p), ValueError);
  CHECK_THROWS_AS(cudnn_lstm(x, h[0], h, p), ValueError);
  CHECK_THROWS_AS(cudnn_lstm(x, h, h.to(kFloat32), p), TypeError);
  CHECK_THROWS_AS(cudnn_lstm(x, h, h, TensorList(p).slice(0, 3)), ValueError);
  const auto call = [&](int64_t stride, int64_t mode, int64_t hidden, int64_t projection, int64_t layers) {
    return ops::_cudnn_rnn(x, p, stride, std::nullopt, h, h, mode, hidden, projection, layers, false, 0.0, true, false,
                           {}, std::nullopt);
  };
  call(4, 2, kHidden, 0, 1);
  CHECK_THROWS_AS(call(2, 2, kHidden, 0, 1), ValueError);
  CHECK_THROWS_AS(call(4, 4, kHidden, 0, 1), ValueError);
  CHECK_THROWS_AS(call(4, 3, kHidden, 0, 1), ValueError);
  CHECK_THROWS_AS(call(4, 2, 0, 0, 1), ValueError);
  CHECK_THROWS_AS(call(4, 2, kHidden, kHidden, 1), ValueError);
  CHECK_THROWS_AS(call(4, 2, kHidden, 0, int64_t{1} << 62), ValueError);
  CHECK(asked.forwards == 1);
}
