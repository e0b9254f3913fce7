// Capturable optimisers, as far as the CPU knows them, and gradients that are clipped without waiting.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "backends/functors/optim.h"
#include "optim/graphs/device_numbers.h"
#include "rushlight.h"
#include "tests/autograd/leaf.h"

using namespace rush;
using optim::DeviceNumbers;
using rush::testing::list;

TEST_CASE("the numbers of options come in the order in which kernels take them") {
  AdamStep adam{};
  adam.take(optim::AdamOptions(1).betas({0.2, 0.3}).eps(4).weight_decay(5).device_numbers().data());
  CHECK((adam.lr == 1 && adam.beta1 == 0.2 && adam.beta2 == 0.3 && adam.eps == 4 && adam.weight_decay == 5));
  AdadeltaStep adadelta{};
  adadelta.take(optim::AdadeltaOptions(1).rho(0.2).eps(3).weight_decay(4).device_numbers().data());
  CHECK((adadelta.lr == 1 && adadelta.rho == 0.2 && adadelta.eps == 3 && adadelta.weight_decay == 4));
  RmsPropStep rmsprop{};
  rmsprop.take(optim::RMSpropOptions(1).alpha(0.2).eps(3).weight_decay(4).momentum(5).device_numbers().data());
  CHECK((rmsprop.lr == 1 && rmsprop.alpha == 0.2 && rmsprop.eps == 3));
  CHECK((rmsprop.weight_decay == 4 && rmsprop.momentum == 5));
  AdagradStep adagrad{};
  adagrad.take(optim::AdagradOptions(1).lr_decay(2).eps(3).weight_decay(4).device_numbers().data());
  CHECK((adagrad.lr == 1 && adagrad.lr_decay == 2 && adagrad.eps == 3 && adagrad.weight_decay == 4));
  NAdamStep nadam{};
  const auto nadam_options = optim::NAdamOptions(1).betas({0.2, 0.3}).eps(4).weight_decay(5).momentum_decay(6);
  nadam.take(nadam_options.device_numbers().data());
  CHECK((nadam.lr == 1 && nadam.beta1 == 0.2 && nadam.beta2 == 0.3 && nadam.eps == 4));
  CHECK((nadam.weight_decay == 5 && nadam.momentum_decay == 6));
  RAdamStep radam{};
  radam.take(optim::RAdamOptions(1).betas({0.2, 0.3}).eps(4).weight_decay(5).device_numbers().data());
  CHECK((radam.lr == 1 && radam.beta1 == 0.2 && radam.beta2 == 0.3 && radam.eps == 4 && radam.weight_decay == 5));
  SgdStep sgd{};
  sgd.take(optim::SGDOptions(1).momentum(2).dampening(3).weight_decay(4).device_numbers().data());
  CHECK((sgd.lr == 1 && sgd.momentum == 2 && sgd.dampening == 3 && sgd.weight_decay == 4));
}

TEST_CASE("numbers on the device follow the options") {
  const Tensor w = ones({2}), v = ones({2});
  auto optimizer = std::make_unique<optim::SGD>(std::vector<Tensor>{w}, optim::SGDOptions(0.5));
  optimizer->add_param_group({{v}, std::make_unique<optim::SGDOptions>(optim::SGDOptions(2).momentum(0.9))});
  DeviceNumbers numbers(optimizer.get());
  const Tensor first = numbers.of_group(0, w.device());
  const Tensor second = numbers.of_group(1, w.device());
  CHECK(first.scalar_type() == kFloat64);
  CHECK(list(first) == std::vector<double>{0.5, 0, 0, 0});
  CHECK(list(second) == std::vector<double>{2, 0.9, 0, 0});
  optimizer->param_groups()[0].options().set_lr(0.25);
  CHECK(numbers.of_group(0, w.device()).is_same(first));  // the same memory: graphs know its address
  CHECK(list(first) == std::vector<double>{0.25, 0, 0, 0});
  optimizer->param_groups()[0].options().set_lr(0.125);
  optimizer->param_groups()[1].options().set_momentum(0.8);
  numbers.update();
  CHECK(list(first) == std::vector<double>{0.125, 0, 0, 0});
  CHECK(list(second) == std::vector<double>{2, 0.8, 0, 0});
  optimizer.reset();
  numbers.set_owner(nullptr);
  numbers.update();  // nobody to ask
  CHECK(list(second) == std::vector<double>{2, 0.8, 0, 0});
}

TEST_CASE("before a replay the numbers are brought up to date and the parameters count as written") {
  const Tensor w = ones({2});
  optim::SGD optimizer({w}, optim::SGDOptions(0.5));
  const auto numbers = std::make_shared<DeviceNumbers>(&optimizer);
  const Tensor on_device = numbers->of_group(0, w.device());
  optim::CapturedStep step(numbers, {w.detach()}, {});
  optimizer.param_groups()[0].options().set_lr(3);
  const int64_t version = w._version();
  step.before_replay();
  CHECK(on_device[0].item<double>() == 3);
  CHECK(w._version() == version + 1);
}

TEST_CASE("capturable optimisers train on a GPU only") {
  const Tensor w = ones({2}, kCPU).requires_grad_();
  w.mutable_grad() = ones({2}, kCPU);
  optim::SGD sgd({w}, optim::SGDOptions(0.5).capturable(true));
  optim::Adam adam({w}, optim::AdamOptions(0.5).capturable(true));
  optim::AdamW adamw({w}, optim::AdamWOptions(0.5).capturable(true));
  optim::Adadelta adadelta({w}, optim::AdadeltaOptions(0.5).capturable(true));
  CHECK_THROWS_AS(adadelta.step(), ValueError);
  CHECK_THROWS_AS(optim::RMSprop({w}, optim::RMSpropOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::Adagrad({w}, optim::AdagradOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::NAdam({w}, optim::NAdamOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::RAdam({w}, optim::RAdamOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::Adamax({w}, optim::AdamaxOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::ASGD({w}, optim::ASGDOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::Rprop({w}, optim::RpropOptions(0.5).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(sgd.step(), ValueError);
  CHECK_THROWS_AS(adam.step(), ValueError);
  CHECK_THROWS_AS(adamw.step(), ValueError);
  CHECK(equal(w, ones({2}, kCPU)));
  CHECK(sgd.step_supports_amp_scaling());
  CHECK_FALSE(optim::SGD({w}, optim::SGDOptions(0.5)).step_supports_amp_scaling());
  CHECK_FALSE(optim::RMSprop({w}, optim::RMSpropOptions(0.5)).step_supports_amp_scaling());
}

TEST_CASE("a state dict does not know whether its optimiser is capturable") {
  const Tensor w = ones({2}).requires_grad_();
  w.mutable_grad() = ones({2});
  optim::Adam usual({w}, optim::AdamOptions(0.5)), capturable({w}, optim::AdamOptions(0.5).capturable(true));
  usual.step();
  capturable.load_state_dict(usual.state_dict());
  CHECK(capturable.state_dict().size() == usual.state_dict().size());
  CHECK(capturable.state_dict()["state.0.step"].item<int64_t>() == 1);
}

TEST_CASE("an optimiser that is moved keeps its numbers and its state") {
  const Tensor w = ones({2}).requires_grad_();
  w.mutable_grad() = ones({2});
  optim::Adam first({w}, optim::AdamOptions(0.5)), other({w}, optim::AdamOptions(0.1));
  first.step();
  optim::Adam moved(std::move(first));
  moved.step();
  CHECK(moved.state_dict()["state.0.step"].item<int64_t>() == 2);
  other = std::move(moved);
  CHECK(other.state_dict()["state.0.step"].item<int64_t>() == 2);
}

TEST_CASE("gradients are clipped by their norm without waiting for it") {
  for (const double norm_type : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
    for (const double factor : {0.01, 1.0, 100.0, std::numeric_limits<double>::quiet_NaN()}) {
      INFO(norm_type, " ", factor);
      std::vector<Tensor> params, twins;
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 2}, {4}}) {
        for (std::vector<Tensor>* list : {&params, &twins}) {
          list->push_back(zeros(sizes).requires_grad_());
          list->back().mutable_grad() = (ones(sizes).flatten().cumsum(0) * factor).view(sizes);
        }
      }
      params.push_back(zeros({2}).requires_grad_());  // one without a gradient
      const double expected = nn::utils::clip_grad_norm_(twins, 2, norm_type);
      const Tensor norm = nn::utils::get_total_norm({params[0].grad(), params[1].grad()}, norm_type);
      CHECK(norm.dim() == 0);
      CHECK((norm.item<double>() == expected || std::isnan(expected)));
      nn::utils::clip_grads_with_norm_(params, 2, norm);
      for (size_t i = 0; i < 2; ++i) CHECK(allclose(params[i].grad(), twins[i].grad(), 0, 0, /*equal_nan=*/true));
      if (!std::isfinite(factor)) {
        CHECK_THROWS_AS(nn::utils::get_total_norm({params[0].grad()}, norm_type, true), Error);
      }
    }
  }
  CHECK(nn::utils::get_total_norm({}).item<double>() == 0);
}

TEST_CASE("a step needs a warm-up to become a graph") {
  const auto step = [](const Tensor& x) { return x; };
  CHECK_THROWS_AS(cuda::GraphedStep(step, {.warmup = 0}), ValueError);
}
