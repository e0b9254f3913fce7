#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>

#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/optim/misfits.h"

namespace {

using namespace rush;
using rush::testing::value_error_of;
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
  return param.detach() * 0.5 + tensor(ArrayRef<double>(wave), kFloat64).to(param.scalar_type()).reshape(param.sizes());
}

template <class T>
void read(const json& given, T& value) {
  value = given.get<T>();
}
template <class T>
void read(const json& given, std::optional<T>& value) {
  value = given.get<T>();
}
void read(const json& given, std::tuple<std::optional<double>, double>& value) {
  value = {given[0].get<double>(), given[1].get<double>()};
}

// Sets the option of a fixture, where this optimiser has it.
#define SET(name)                                            \
  if constexpr (requires { o.name(); }) {                    \
    if (given.contains(#name)) read(given[#name], o.name()); \
  }

template <class Optimizer, class Options>
std::unique_ptr<optim::Optimizer> make(const json& given, const std::vector<Tensor>& params, Options o) {
  SET(lr)
  SET(betas)
  SET(eps)
  SET(weight_decay)
  SET(amsgrad)
  SET(maximize)
  SET(momentum)
  SET(dampening)
  SET(nesterov)
  SET(alpha)
  SET(centered)
  SET(lr_decay)
  SET(initial_accumulator_value)
  SET(rho)
  SET(momentum_decay)
  SET(decoupled_weight_decay)
  SET(max_iter)
  SET(history_size)
  SET(max_eval)
  SET(line_search_fn)
  SET(lambd)
  SET(t0)
  SET(etas)
  SET(step_sizes)
  SET(beta2_decay)
  SET(d)
  SET(ns_coefficients)
  SET(ns_steps)
  SET(adjust_lr_fn)
  if constexpr (std::is_same_v<Options, optim::LBFGSOptions>) o.tolerance_grad(1e-10).tolerance_change(1e-12);
  return std::make_unique<Optimizer>(params, o);
}
#undef SET

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const json& given,
                                                 const std::vector<Tensor>& params) {
  using namespace optim;
  if (name == "SGD") return make<SGD>(given, params, SGDOptions(1));
  if (name == "Adam") return make<Adam>(given, params, AdamOptions());
  if (name == "AdamW") return make<AdamW>(given, params, AdamWOptions());
  if (name == "RMSprop") return make<RMSprop>(given, params, RMSpropOptions());
  if (name == "Adagrad") return make<Adagrad>(given, params, AdagradOptions());
  if (name == "Adadelta") return make<Adadelta>(given, params, AdadeltaOptions());
  if (name == "NAdam") return make<NAdam>(given, params, NAdamOptions());
  if (name == "RAdam") return make<RAdam>(given, params, RAdamOptions());
  if (name == "Adamax") return make<Adamax>(given, params, AdamaxOptions());
  if (name == "ASGD") return make<ASGD>(given, params, ASGDOptions());
  if (name == "Rprop") return make<Rprop>(given, params, RpropOptions());
  if (name == "Adafactor") return make<Adafactor>(given, params, AdafactorOptions());
  if (name == "Muon") return make<Muon>(given, params, MuonOptions());
  return make<LBFGS>(given, params, LBFGSOptions());
}

void compare(const std::vector<Tensor>& params, const json& expected, int step, double tolerance) {
  size_t i = 0;
  for (const Tensor& param : params) {
    const Tensor flat = param.detach().flatten();
    for (int64_t k = 0; k < flat.numel(); ++k) {
      const double should = expected[i++], got = flat[k].item<double>();
      CHECK_MESSAGE(std::abs(got - should) <= tolerance * (1 + std::abs(should)), "step ", step, " element ", k, ": ",
                    got, " instead of ", should);
    }
  }
}

// Runs the 100 steps of a fixture on parameters that `make` lays out, and compares.
template <class Make>
void check_run(const json& fixture, const Make& make) {
  const ScalarType dtype = fixture["dtype"] == "float64" ? kFloat64 : kFloat32;
  double tolerance = dtype == kFloat64 ? 1e-12 : 5e-6;
  // Muon's products are rounded to bfloat16. The order in which a product adds differs between machines, so that a few
  // updates lie one rounding beside PyTorch's.
  if (fixture["optimizer"] == "Muon") tolerance = 4 * fixture["options"].value("lr", 1e-3) / 256;
  std::vector<Tensor> params;
  for (int n = 0; n < 2; ++n) {
    const auto sizes = fixture["shapes"][static_cast<size_t>(n)].get<std::vector<int64_t>>();
    const std::vector<double> values = start(n, static_cast<int>(checked_numel(sizes)));
    params.push_back(make(tensor(ArrayRef<double>(values), kFloat64).to(dtype).reshape(sizes)));
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
    compare(params, *kept, step, tolerance);
  }
}

TEST_CASE("100 steps of every optimizer agree with PyTorch's") {
  const json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["optimizers"].size() == 88);
  for (const json& fixture : fixtures["optimizers"]) {
    CAPTURE(fixture["optimizer"].get<std::string>());
    CAPTURE(fixture["options"].dump());
    check_run(fixture, [](const Tensor& values) { return values.clone(); });
  }
}

TEST_CASE("100 steps of LBFGS agree with PyTorch's, and so does the number of evaluations") {
  const json fixtures = read_fixtures("optim/fixtures.json");
  CHECK(fixtures["lbfgs"].size() == 5);
  for (const json& fixture : fixtures["lbfgs"]) {
    CAPTURE(fixture["options"].dump());
    std::vector<Tensor> params;
    for (int n = 0; n < 2; ++n) {
      params.push_back(tensor(ArrayRef<double>(start(n, n == 0 ? 5 : 3)), kFloat64).requires_grad_());
    }
    const auto lbfgs = make_optimizer("LBFGS", fixture["options"], params);
    int calls = 0;
    for (int step = 1; step <= 100; ++step) {
      lbfgs->step([&] {
        ++calls;
        lbfgs->zero_grad();
        const Tensor x = cat(params), a = x.narrow(0, 0, 7), b = x.narrow(0, 1, 7);
        Tensor loss = ((b - a * a).square() * 5 + (a - 1).square()).sum();
        loss.backward();
        return loss;
      });
      const auto kept = fixture["params"].find(std::to_string(step));
      if (kept != fixture["params"].end()) compare(params, *kept, step, 1e-10);
    }
    CHECK(calls == fixture["calls"].get<int>());
    const auto& state = static_cast<const optim::LBFGSParamState&>(*lbfgs->state().begin()->second);
    CHECK(state.func_evals() == calls);
  }
}

TEST_CASE("parameters with gaps in memory, and gradients of another layout, are updated alike") {
  const json fixtures = read_fixtures("optim/fixtures.json");
  for (const json& fixture : fixtures["optimizers"]) {
    check_run(fixture, [](const Tensor& values) {
      Tensor column = zeros_like(values).unsqueeze(-1).repeat_interleave(3, -1).select(-1, 1);
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
  for (const char* name : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD",
                           "Rprop", "LBFGS"}) {
    CAPTURE(name);
    const Tensor pairs = tensor(ArrayRef<double>(start(3, 6)), kFloat64).view({3, 2});
    const Tensor real = pairs.clone().requires_grad_();
    const Tensor param = view_as_complex(pairs.clone()).requires_grad_();
    const json options = {{"lr", 0.1}, {"weight_decay", 0.1}, {"initial_accumulator_value", 0.5}};
    const auto optimizer = make_optimizer(name, options, {param}), reference = make_optimizer(name, options, {real});
    for (int step = 0; step < 3; ++step) {
      const Tensor grad = real.detach().cos() * (step + 1);
      optimizer->step([&] {
        param.mutable_grad() = view_as_complex(grad.clone());
        return grad.sum();
      });
      reference->step([&] {
        real.mutable_grad() = grad.clone();
        return grad.sum();
      });
    }
    CHECK(view_as_real(param.detach()).equal(real.detach()));
    CHECK(!real.detach().equal(pairs));
  }
}

TEST_CASE("options outside their range are refused by name, NaN among them") {
  const std::vector<Tensor> params = {ones(3, TensorOptions().requires_grad(true))};
  const double nan = std::nan("");
  const std::map<std::string, std::vector<std::pair<const char*, json>>> kBad = {
      {"SGD", {{"lr", -1}, {"momentum", -1}, {"weight_decay", -1}}},
      {"Adam", {{"lr", -1}, {"eps", -1}, {"betas", {0.5, 1}}, {"betas", {-0.1, 0.5}}, {"weight_decay", -1}}},
      {"AdamW", {{"lr", -1}, {"eps", -1}, {"betas", {0.5, 1}}, {"weight_decay", -1}}},
      {"RMSprop", {{"lr", -1}, {"eps", -1}, {"alpha", -1}, {"momentum", -1}, {"weight_decay", -1}}},
      {"Adagrad", {{"lr", -1}, {"eps", -1}, {"lr_decay", -1}, {"initial_accumulator_value", -1}, {"weight_decay", -1}}},
      {"Adadelta", {{"lr", -1}, {"eps", -1}, {"rho", 1.1}, {"rho", -0.1}, {"weight_decay", -1}}},
      {"NAdam", {{"lr", -1}, {"eps", -1}, {"betas", {1, 0.5}}, {"momentum_decay", -1}, {"weight_decay", -1}}},
      {"RAdam", {{"lr", -1}, {"eps", -1}, {"betas", {1, 0.5}}, {"weight_decay", -1}}},
      {"Adamax", {{"lr", -1}, {"eps", -1}, {"betas", {1, 0.5}}, {"weight_decay", -1}}},
      {"ASGD", {{"lr", -1}, {"weight_decay", -1}}},
      {"Rprop", {{"lr", -1}, {"etas", {0, 1.2}}, {"etas", {1, 1.2}}, {"etas", {0.5, 1}}}},
      {"Adafactor",
       {{"lr", -1}, {"eps", {-1, 1}}, {"eps", {1, -1}}, {"beta2_decay", 1}, {"d", 0}, {"weight_decay", -1}}},
      {"Muon", {{"lr", -1}, {"momentum", -1}, {"ns_coefficients", {1, 2}}, {"ns_steps", 100}, {"adjust_lr_fn", "x"}}},
      {"LBFGS", {{"lr", -1}, {"max_iter", 0}, {"max_eval", 0}, {"history_size", 0}, {"line_search_fn", "armijo"}}},
  };
  for (const auto& [name, cases] : kBad) {
    for (const auto& [option, value] : cases) {
      const std::string message = value_error_of([&] { make_optimizer(name, {{option, value}}, params); });
      CHECK_MESSAGE(message.find(name + ": ") == 0, message);
      CHECK_MESSAGE(message.find(option) != std::string::npos, message);
    }
    CHECK(value_error_of([&] { make_optimizer(name, {{"lr", nan}}, params); }).find("lr must be") != std::string::npos);

    // A rate that becomes NaN later stops the step before it changes anything.
    const auto optimizer = make_optimizer(name, json::object(), params);
    optimizer->param_groups()[0].options().set_lr(nan);
    params[0].mutable_grad() = ones(3);
    CHECK(value_error_of([&] { optimizer->step([] { return ones({}); }); }) ==
          "optimizer: the lr of parameter group 0 is NaN");
    CHECK(params[0].detach().equal(ones(3)));
  }
}

TEST_CASE("LBFGS asks for a closure and for one group") {
  const Tensor param = ones(3, TensorOptions().requires_grad(true));
  optim::LBFGS lbfgs({param});
  CHECK_THROWS_AS(lbfgs.step(nullptr), ValueError);
  CHECK_THROWS_AS(optim::LBFGS(std::vector<Tensor>()), ValueError);
  lbfgs.add_param_group({{ones(3)}});
  CHECK_THROWS_AS(lbfgs.step([] { return ones({}); }), ValueError);
}

TEST_CASE("parameters that are no leaves and repeated parameters are refused") {
  const Tensor param = ones(3, TensorOptions().requires_grad(true));
  const std::vector<Tensor> params = {param};
  using namespace optim;
  CHECK_THROWS_AS(SGD(params, SGDOptions(0.1).nesterov(true)), ValueError);
  CHECK_THROWS_AS(SGD({param * 2}, SGDOptions(0.1)), ValueError);
  CHECK_THROWS_AS(SGD({Tensor()}, SGDOptions(0.1)), ValueError);
  CHECK_THROWS_AS(SGD({param, param}, SGDOptions(0.1)), ValueError);
  SGD sgd(params, SGDOptions(0.1));
  CHECK_THROWS_AS(sgd.add_param_group({params}), ValueError);
  CHECK_THROWS_AS(sgd.add_param_group({{}, std::make_unique<SGDOptions>(-1.0)}), ValueError);
  CHECK(sgd.param_groups().size() == 1);
}

}  // namespace
