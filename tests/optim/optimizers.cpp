#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>

#include "rushlight.h"
#include "tests/fixtures.h"

namespace {

using namespace rush;
using json = nlohmann::json;

std::vector<double> start(int number, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(std::sin(1.7 * number + 0.9 * i));
  return values;
}

Tensor gradient(const Tensor& param, int step, int number) {
  std::vector<double> wave;
  for (int64_t i = 0; i < param.numel(); ++i) {
    wave.push_back(std::cos(0.3 * step + number + 0.5 * static_cast<double>(i)));
  }
  return param.detach() * 0.5 + tensor(ArrayRef<double>(wave), kFloat64).to(param.scalar_type());
}

template <class Options>
void set_adam(Options& o, const json& given) {
  if (given.contains("betas")) o.betas({given["betas"][0], given["betas"][1]});
  if (given.contains("eps")) o.eps(given["eps"]);
  if (given.contains("weight_decay")) o.weight_decay(given["weight_decay"]);
  if (given.contains("amsgrad")) o.amsgrad(given["amsgrad"]);
  if (given.contains("maximize")) o.maximize(given["maximize"]);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const json& given,
                                                 const std::vector<Tensor>& params) {
  if (name == "SGD") {
    optim::SGDOptions o(given["lr"].get<double>());
    o.momentum(given.value("momentum", 0.0)).dampening(given.value("dampening", 0.0));
    o.weight_decay(given.value("weight_decay", 0.0)).nesterov(given.value("nesterov", false));
    o.maximize(given.value("maximize", false));
    return std::make_unique<optim::SGD>(params, o);
  }
  if (name == "Adam") {
    optim::AdamOptions o(given["lr"].get<double>());
    set_adam(o, given);
    return std::make_unique<optim::Adam>(params, o);
  }
  optim::AdamWOptions o(given["lr"].get<double>());
  set_adam(o, given);
  return std::make_unique<optim::AdamW>(params, o);
}

// Runs the 100 steps of a fixture on parameters that `make` lays out, and compares.
template <class Make>
void check_run(const json& fixture, const Make& make) {
  const ScalarType dtype = fixture["dtype"] == "float64" ? kFloat64 : kFloat32;
  const double tolerance = dtype == kFloat64 ? 1e-12 : 5e-6;
  std::vector<Tensor> params;
  for (int n = 0; n < 2; ++n) {
    params.push_back(make(tensor(ArrayRef<double>(start(n, n == 0 ? 7 : 3)), kFloat64).to(dtype)));
    params.back().requires_grad_();
  }
  const auto optimizer = make_optimizer(fixture["optimizer"], fixture["options"], params);
  for (int step = 1; step <= 100; ++step) {
    for (int n = 0; n < 2; ++n) {
      Tensor& grad = params[static_cast<size_t>(n)].mutable_grad();
      grad = n == 1 && step % 3 == 0 ? Tensor() : gradient(params[static_cast<size_t>(n)], step, n);
    }
    optimizer->step();
    const auto kept = fixture["params"].find(std::to_string(step));
    if (kept == fixture["params"].end()) continue;
    size_t i = 0;
    for (const Tensor& param : params) {
      for (int64_t k = 0; k < param.numel(); ++k) {
        const double expected = (*kept)[i++];
        const double got = param[k].item<double>();
        CHECK_MESSAGE(std::abs(got - expected) <= tolerance * (1 + std::abs(expected)), "step ", step, " element ", k,
                      ": ", got, " instead of ", expected);
      }
    }
  }
}

TEST_CASE("100 steps of every optimizer agree with PyTorch's") {
  const json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["optimizers"].size() == 22);
  for (const json& fixture : fixtures["optimizers"]) {
    CAPTURE(fixture["optimizer"].get<std::string>());
    CAPTURE(fixture["options"].dump());
    check_run(fixture, [](const Tensor& values) { return values.clone(); });
  }
}

TEST_CASE("parameters with gaps in memory, and gradients of another layout, are updated alike") {
  const json fixtures = read_fixtures("optim/fixtures.json");
  for (const json& fixture : fixtures["optimizers"]) {
    check_run(fixture, [](const Tensor& values) {
      Tensor wide = zeros({values.size(0), 3}, values.options());
      Tensor column = wide.select(1, 1).detach();
      column.copy_(values);
      return column;
    });
  }
}

TEST_CASE("each group has its own options, and groups without take the optimizer's") {
  std::vector<Tensor> params;
  for (int i = 0; i < 3; ++i) {
    params.push_back(ones(2, TensorOptions().requires_grad(true)));
    params.back().mutable_grad() = ones(2);
  }
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{params[0]});
  groups.emplace_back(std::vector<Tensor>{params[1]}, std::make_unique<optim::SGDOptions>(0.5));
  optim::SGD sgd(groups, optim::SGDOptions(0.25));
  sgd.add_param_group({{params[2]}, std::make_unique<optim::SGDOptions>(optim::SGDOptions(1.0).weight_decay(2.0))});
  CHECK(sgd.param_groups().size() == 3);
  sgd.step();
  CHECK(params[0][0].item<float>() == 0.75f);
  CHECK(params[1][0].item<float>() == 0.5f);
  CHECK(params[2][0].item<float>() == -2.0f);
  static_cast<optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(0);
  sgd.step();
  CHECK(params[0][0].item<float>() == 0.75f);
}

TEST_CASE("a step counts as a write to the parameters, keeps them leaves, and takes a closure") {
  Tensor param = ones(3, TensorOptions().requires_grad(true));
  optim::Adam adam(std::vector<Tensor>{param});
  const int64_t version = param._version();
  int calls = 0;
  const Tensor loss = adam.step([&] {
    ++calls;
    adam.zero_grad();
    Tensor result = (param * param).sum();
    result.backward();
    return result;
  });
  CHECK(calls == 1);
  CHECK(loss.item<float>() == 3);
  CHECK(param._version() > version);
  CHECK(param.is_leaf());
  CHECK(param[0].item<float>() == doctest::Approx(0.999));
  CHECK(adam.state().size() == 1);
  CHECK(!adam.step().defined());
}

TEST_CASE("zero_grad drops gradients, or fills them") {
  Tensor param = ones(3, TensorOptions().requires_grad(true));
  optim::SGD sgd({param}, optim::SGDOptions(0.1));
  param.mutable_grad() = ones(3);
  sgd.zero_grad(/*set_to_none=*/false);
  CHECK(param.grad().defined());
  CHECK(param.grad()[1].item<float>() == 0);
  sgd.zero_grad();
  CHECK(!param.grad().defined());
  sgd.step();  // nothing to do
  CHECK(param[0].item<float>() == 1);
}

TEST_CASE("complex parameters are optimised as pairs of real ones") {
  Tensor param = full(2, Scalar(complex<double>(1, 2)), kComplex128).requires_grad_();
  param.mutable_grad() = full(2, Scalar(complex<double>(0.5, -1)), kComplex128);
  optim::SGD sgd({param}, optim::SGDOptions(0.5));
  sgd.step();
  const auto value = param[1].item<complex<double>>();
  CHECK(value.real() == 0.75);
  CHECK(value.imag() == 2.5);
}

TEST_CASE("bad options, parameters that are no leaves and repeated parameters are refused") {
  const Tensor param = ones(3, TensorOptions().requires_grad(true));
  const std::vector<Tensor> params = {param};
  using namespace optim;
  CHECK_THROWS_AS(SGD(params, SGDOptions(-1)), ValueError);
  CHECK_THROWS_AS(SGD(params, SGDOptions(0.1).momentum(-1)), ValueError);
  CHECK_THROWS_AS(SGD(params, SGDOptions(0.1).nesterov(true)), ValueError);
  CHECK_THROWS_AS(AdamW(params, AdamWOptions(0.1).betas({1.0, 0.9})), ValueError);
  CHECK_THROWS_AS(AdamW(params, AdamWOptions(0.1).eps(-1)), ValueError);
  CHECK_THROWS_AS(Adam(params, AdamOptions(0.1).weight_decay(-1)), ValueError);
  CHECK_THROWS_AS(SGD({param * 2}, SGDOptions(0.1)), ValueError);
  CHECK_THROWS_AS(SGD({Tensor()}, SGDOptions(0.1)), ValueError);
  CHECK_THROWS_AS(SGD({param, param}, SGDOptions(0.1)), ValueError);
  SGD sgd(params, SGDOptions(0.1));
  CHECK_THROWS_AS(sgd.add_param_group({params}), ValueError);
  CHECK_THROWS_AS(sgd.add_param_group({{}, std::make_unique<SGDOptions>(-1.0)}), ValueError);
  CHECK(sgd.param_groups().size() == 1);
}

}  // namespace
