// Products of sizes that tensor cores do not take, in padded rows: the same numbers, and where rows stay together.
#include <doctest/doctest.h>

#include <functional>
#include <string_view>
#include <vector>

#include "autograd/compile/compile.h"
#include "autograd/compile/graph_module.h"
#include "autograd/compile/passes.h"
#include "rushlight.h"

using namespace rush;

namespace {

constexpr int64_t kRows = 512, kDepth = 512, kClasses = 517, kWhole = 520;

std::vector<Tensor> layer_inputs(ScalarType dtype, int64_t classes) {
  manual_seed(1);
  return {(0.1 * randn({2, kRows / 2, kDepth})).to(dtype), (0.1 * randn({classes, kDepth})).to(dtype),
          randn({classes}).to(dtype), randint(0, classes, {kRows}, kInt64)};
}

struct Padded {
  bool is_padded;
  std::vector<Tensor> results;
};

// What the pass makes of a function's calls, which must compute the same.
Padded pad(const compiler::Function& function, const std::vector<Tensor>& inputs, bool pads_outputs = false) {
  const NoGradGuard no_grad;
  Graph graph = make_fx(function, inputs);
  const std::vector<Tensor> expected = GraphModule(graph)(inputs);
  compiler::pad_products(graph, pads_outputs);
  CAPTURE(graph.print());
  bool is_padded = false;
  for (const Graph::Call& call : graph.calls)
    is_padded |= call.op && call.op->name() == std::string_view("aten::linear") &&
                 graph.info(call.result()).sizes.back() == kWhole;
  std::vector<Tensor> got = GraphModule(graph)(inputs);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].sizes() == expected[i].sizes());
    CHECK(allclose(got[i].to(kFloat32), expected[i].to(kFloat32), 2e-2, 2e-3));
  }
  return {is_padded, std::move(got)};
}

// A layer, the gradient of its loss in the scores' place, and what goes back from there.
std::vector<Tensor> layer_with_gradients(const std::vector<Tensor>& in, const OptionalTensor& bias) {
  Tensor scores = rush::linear(in[0], in[1], bias).view({-1, in[1].size(0)});
  const Tensor scale = full({}, 1.0 / kRows), rows = in[0].view({-1, kDepth});
  const Tensor loss = cross_entropy_gradient_(scores, in[3], -100, scale);
  const auto [by_weight, by_bias] = ops::linear_parameter_gradients(scores, rows);
  return {loss, scores.mm(in[1]), by_weight, by_bias};
}

}  // namespace

TEST_CASE("a loss's scores lie in padded rows, and the products before and after read and write the whole") {
  for (const ScalarType dtype : {kBFloat16, kFloat16}) {
    CAPTURE(dtype);
    const std::vector<Tensor> inputs = layer_inputs(dtype, kClasses);
    const Padded with = pad([](const auto& in) { return layer_with_gradients(in, in[2]); }, inputs);
    CHECK(with.is_padded);
    CHECK(with.results[2].is_contiguous());
    CHECK(pad([](const auto& in) { return layer_with_gradients(in, std::nullopt); }, inputs).is_padded);
    const auto without_bias = [](const auto& in) {
      Tensor scores = rush::linear(in[0], in[1]).view({-1, in[1].size(0)});
      const Tensor loss = cross_entropy_gradient_(scores, in[3]);
      return std::vector{loss, scores.mm(in[1]), scores.t().mm(in[0].view({-1, kDepth}))};
    };
    CHECK(pad(without_bias, inputs).is_padded);
    const auto turned = [](const auto& in) {
      Tensor scores = rush::linear(in[0], in[1]).view({-1, in[1].size(0)});
      return std::vector{cross_entropy_gradient_(scores, in[3]), scores.t().mul(2)};
    };
    CHECK_FALSE(pad(turned, inputs).is_padded);
  }
  CHECK_FALSE(
      pad([](const auto& in) { return layer_with_gradients(in, in[2]); }, layer_inputs(kFloat32, kClasses)).is_padded);
  CHECK_FALSE(pad([](const auto& in) { return layer_with_gradients(in, in[2]); }, layer_inputs(kBFloat16, kWhole + 8))
                  .is_padded);
  CHECK_FALSE(
      pad([](const auto& in) { return layer_with_gradients(in, in[2]); }, layer_inputs(kBFloat16, 21)).is_padded);
}

TEST_CASE("a result keeps its rows together unless it may pad them") {
  const std::vector<Tensor> inputs = layer_inputs(kBFloat16, kClasses);
  const compiler::Function layer = [](const auto& in) { return std::vector{rush::linear(in[0], in[1], in[2])}; };
  CHECK_FALSE(pad(layer, inputs).is_padded);
  const Padded padded = pad(layer, inputs, true);
  CHECK(padded.is_padded);
  CHECK(padded.results[0].strides() == IntArrayRef({kRows / 2 * kWhole, kWhole, 1}));
}

TEST_CASE("a bias that is repeated keeps rows together") {
  const std::vector<Tensor> inputs = layer_inputs(kBFloat16, kClasses);
  const auto repeated = [](const auto& in) { return std::vector{rush::linear(in[0], in[1], in[2].narrow(0, 0, 1))}; };
  CHECK_FALSE(pad(repeated, inputs, true).is_padded);
}

TEST_CASE("other readers of the scores, and a weight that is written, keep rows together") {
  const std::vector<Tensor> inputs = layer_inputs(kBFloat16, kClasses);
  CHECK_FALSE(
      pad([](const auto& in) { return std::vector{rush::linear(in[0], in[1]).relu()}; }, inputs, true).is_padded);
  CHECK_FALSE(pad(
                  [](const auto& in) {
                    const Tensor scores = rush::linear(in[0], in[1]).view({-1, kClasses});
                    return std::vector{scores.mm(in[1] * 2)};
                  },
                  inputs)
                  .is_padded);
  CHECK_FALSE(pad(
                  [](const auto& in) {
                    Tensor weight = in[1] * 1;
                    const Tensor scores = rush::linear(in[0], weight).view({-1, kClasses});
                    weight.mul_(2);
                    return std::vector{scores.mm(weight)};
                  },
                  inputs)
                  .is_padded);
}

TEST_CASE("the gradient of a cross entropy in padded rows leaves what lies between them") {
  for (const int64_t classes : {kClasses, int64_t{2051}}) {
    manual_seed(2);
    const Tensor wide = randn({7, classes + 5}).to(kBFloat16), target = randint(0, classes, {7}, kInt64);
    target[3].fill_(-100);
    Tensor rows = wide.clone().narrow(1, 0, classes), together = wide.narrow(1, 0, classes).contiguous();
    const Tensor loss = cross_entropy_gradient_(rows, target), expected = cross_entropy_gradient_(together, target);
    CHECK(allclose(loss, expected, 1e-5, 1e-5));
    CHECK(allclose(rows.to(kFloat32), together.to(kFloat32), 1e-2, 1e-6));
    const Tensor between = detail::make_view(rows, {7, 5}, rows.strides(), classes);
    CHECK(between.equal(wide.narrow(1, classes, 5)));
  }
}
