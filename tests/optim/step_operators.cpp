// Steps of optimisers as operators: Note [Steps as operators].
#include <doctest/doctest.h>

#include "core/dispatch/call.h"
#include "core/dispatch/registry.h"
#include "rushlight.h"

using namespace rush;

namespace {

// A step of SGD with a rate of 0.1, by name.
void take_sgd_step(const Tensors& params, const Tensors& grads, std::vector<double> options) {
  const Tensors none;
  call_operator("rush::sgd_step_", {params, grads, none, none, none, std::vector<int64_t>(), std::vector<double>(),
                                    std::move(options), none, none, Value(), Value(), Value()});
}

}  // namespace

TEST_CASE("a step can be taken by name, on lists of tensors") {
  const Tensors params = {ones({3}), full({2, 2}, 4.0)}, grads = {full({3}, 0.5), full({2, 2}, -1.0)};
  take_sgd_step(params, grads, {0.1, 0, 0, 0, 0, 0, 0});
  CHECK(allclose(params[0], full({3}, 0.95)));
  CHECK(allclose(params[1], full({2, 2}, 4.1)));
  take_sgd_step(params, grads, {0.1, 0, 0, 0, 0, /*maximize=*/1, 0});
  CHECK(allclose(params[0], full({3}, 1.0)));
}

TEST_CASE("a step by name is refused whole when its lists or options do not fit") {
  const Tensors params = {ones({3}), ones({2})};
  const std::vector<double> rate = {0.1, 0, 0, 0, 0, 0, 0}, momentum = {0.1, 0.9, 0, 0, 0, 0, 0};
  CHECK_THROWS_AS(take_sgd_step(params, {ones({3})}, rate), ValueError);
  CHECK_THROWS_AS(take_sgd_step(params, {ones({3}), ones({3})}, rate), ValueError);
  CHECK_THROWS_AS(take_sgd_step(params, params, momentum), ValueError);  // there are no buffers
  CHECK_THROWS_AS(take_sgd_step(params, params, {0.1}), ValueError);
  for (const Tensor& param : params) CHECK(equal(param, ones_like(param)));
}

TEST_CASE("Muon's numbers are checked where its step is taken, too") {
  const Tensor w = ones({2, 3}).requires_grad_();
  w.sum().backward();
  optim::Muon muon({w}, optim::MuonOptions());
  auto& options = static_cast<optim::MuonOptions&>(muon.param_groups()[0].options());
  for (const std::vector<double>& wrong :
       {std::vector<double>{}, std::vector<double>(4, 1.), std::vector<double>(1000, 1.)}) {
    options.ns_coefficients(wrong);
    CHECK_THROWS_AS(muon.step(), Error);
  }
  options.ns_coefficients({3, -4, 2}).ns_steps(int64_t{1} << 40);
  CHECK_THROWS_AS(muon.step(), ValueError);
  CHECK(equal(w, ones({2, 3})));
  options.ns_steps(5);
  muon.step();
  CHECK(!equal(w, ones({2, 3})));
}

TEST_CASE("every optimiser with a kernel calls its operator once a step") {
  static std::string called;
  constexpr DispatchKey key = DispatchKey::Free4;  // not taken: other tests count how many are left
  registry().fallback(key, [](const OpBase& op, KeySet, Stack& stack) {
    if (op.name().ends_with("_step_")) called += std::string(op.name()) + " ";
    op.call_boxed(stack, key);
  });
  const auto name_of = [](auto make) {
    Tensor w = ones({3}).requires_grad_(), b = ones({2}).requires_grad_();
    (w.sum() + b.sum()).backward();
    auto optimizer = make(Tensors{w, b});
    called.clear();
    const IncludeDispatchKeyGuard seen(key);
    optimizer.step();
    return called;
  };
  CHECK(name_of([](Tensors p) { return optim::SGD(p, 0.1); }) == "rush::sgd_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Adam(p); }) == "rush::adam_step_ ");
  CHECK(name_of([](Tensors p) { return optim::AdamW(p); }) == "rush::adam_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Adadelta(p); }) == "rush::adadelta_step_ ");
  CHECK(name_of([](Tensors p) { return optim::RMSprop(p); }) == "rush::rmsprop_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Adagrad(p); }) == "rush::adagrad_step_ ");
  CHECK(name_of([](Tensors p) { return optim::NAdam(p); }) == "rush::nadam_step_ ");
  CHECK(name_of([](Tensors p) { return optim::RAdam(p); }) == "rush::radam_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Adamax(p); }) == "rush::adamax_step_ ");
  CHECK(name_of([](Tensors p) { return optim::ASGD(p); }) == "rush::asgd_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Rprop(p); }) == "rush::rprop_step_ ");
  CHECK(name_of([](Tensors p) { return optim::Adafactor(p); }) == "rush::adafactor_step_ ");
}
