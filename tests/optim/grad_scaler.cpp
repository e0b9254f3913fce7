#include "optim/amp/grad_scaler.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/not_finite.h"

using namespace rush;
using amp::GradScaler;
using amp::GradScalerOptions;
using rush::testing::kInf;

namespace {

Tensor one(double value) { return full({}, value, TensorOptions(kFloat32)); }
Tensor parameter(const std::vector<float>& values) { return tensor(values).requires_grad_(); }

// A scaler with a scale, and an optimiser with one parameter.
struct Small {
  Tensor w = parameter({1, 2});
  optim::SGD optimizer{{w}, optim::SGDOptions(0.5)};
  GradScaler scaler{GradScalerOptions().init_scale(8)};

  void backward(double factor = 1) {
    optimizer.zero_grad();
    scaler.scale(w.sum() * factor).backward();
  }
};

}  // namespace

TEST_CASE("scales, steps and weights are PyTorch's over a run with infinities") {
  const Tensor w = parameter({1, 2}), v = parameter({3});
  optim::SGD first({w}, optim::SGDOptions(0.5)), second({v}, optim::SGDOptions(0.5));
  GradScaler scaler(GradScalerOptions().init_scale(1024).growth_factor(4).backoff_factor(0.25).growth_interval(3));
  // torch.amp.GradScaler("cpu", ...) of PyTorch 2.11 after each iteration.
  const double scales[] = {1024, 1024, 256, 64, 64, 64, 256, 64, 64, 64, 256, 256, 64, 64};
  const int64_t trackers[] = {1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 0, 1, 0, 1};
  for (int i = 0; i < 14; ++i) {
    INFO(i);
    const bool bad_w = i == 2 || i == 7 || i == 12, bad_v = i == 3 || i == 7;
    first.zero_grad();
    second.zero_grad();
    const Tensor loss_w = (w * w).sum() / 8 * (bad_w ? kInf : 1), loss_v = (v * v).sum() / 8 * (bad_v ? NAN : 1);
    for (const Tensor& loss : scaler.scale(TensorList({loss_w, loss_v}))) loss.backward();
    scaler.unscale_(first);
    nn::utils::clip_grad_norm_({w}, 0.5);
    scaler.step(first);
    scaler.step(second);
    CHECK(scaler.step_was_skipped(first) == bad_w);
    CHECK(scaler.step_was_skipped(second) == bad_v);
    scaler.update();
    CHECK(scaler.get_scale() == scales[i]);
    CHECK(scaler.state_dict()["_growth_tracker"].item<int64_t>() == trackers[i]);
    CHECK(scaler.step_was_skipped(first) == bad_w);
    if (i == 3) CHECK(v.item<double>() == doctest::Approx(2.009765625).epsilon(1e-6));
  }
  CHECK(w[0].item<double>() == doctest::Approx(0.23366287350654602).epsilon(1e-6));
  CHECK(w[1].item<double>() == doctest::Approx(0.46732574701309204).epsilon(1e-6));
  CHECK(v.item<double>() == doctest::Approx(0.6042517423629761).epsilon(1e-6));
}

TEST_CASE("gradients of every floating dtype and layout are unscaled and looked at") {
  for (ScalarType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    INFO(str(dtype));
    const Tensor whole = linspace(-8, 8, 77, TensorOptions(kFloat64)).to(dtype);
    const Tensor apart = stack({whole, whole}, 1).select(1, 0), empty_one = empty({0}, TensorOptions(dtype));
    const Tensor expected = (whole.to(kFloat64) * 0.25).to(dtype);
    const Tensor found_inf = one(0);
    _amp_foreach_non_finite_check_and_unscale_(TensorList({whole, apart, empty_one}), found_inf, one(0.25));
    CHECK(whole.equal(expected));
    CHECK(apart.equal(expected));
    CHECK(found_inf.item<float>() == 0);
    for (double bad : {kInf, -kInf, static_cast<double>(NAN)}) {
      for (int64_t place : {0, 40, 76}) {
        const Tensor grad = ones({77}, TensorOptions(dtype));
        grad[place].fill_(bad);
        found_inf.zero_();
        _amp_foreach_non_finite_check_and_unscale_(TensorList({whole, grad}), found_inf, one(1));
        CHECK(found_inf.item<float>() == 1);
      }
    }
  }
  _amp_foreach_non_finite_check_and_unscale_({}, one(0), one(1));
}

TEST_CASE("writing gradients is noticed by those who saved them") {
  const Tensor grad = ones({3}), found_inf = one(0);
  const int64_t before = grad._version();
  _amp_foreach_non_finite_check_and_unscale_(TensorList({grad}), found_inf, one(0.5));
  CHECK(grad._version() == before + 1);
  CHECK(found_inf._version() == 1);
}

TEST_CASE("bad arguments of the operators are refused before anything is written") {
  const Tensor grad = ones({3});
  const auto unscale = [&](const Tensor& second, const Tensor& found_inf, const Tensor& inv_scale) {
    _amp_foreach_non_finite_check_and_unscale_(TensorList({grad, second}), found_inf, inv_scale);
  };
  CHECK_THROWS_AS(unscale(ones({3}, TensorOptions(kFloat64)), one(0), one(2)), TypeError);
  CHECK_THROWS_AS(unscale(empty({3}, TensorOptions(kFloat32).device(kMeta)), one(0), one(2)), ValueError);
  CHECK_THROWS_AS(unscale(Tensor(), one(0), one(2)), ValueError);
  CHECK_THROWS_AS(unscale(one(1).expand({3}), one(0), one(2)), ValueError);
  CHECK_THROWS_AS(unscale(grad, zeros({2}), one(2)), ValueError);
  CHECK_THROWS_AS(unscale(grad, one(0), full({}, 2, TensorOptions(kFloat64))), ValueError);
  CHECK(grad.eq(1).all().item<bool>());
  CHECK_THROWS_AS(
      _amp_foreach_non_finite_check_and_unscale_(TensorList({ones({2}, TensorOptions(kLong))}), one(0), one(1)),
      TypeError);
  Tensor scale = one(4), tracker = zeros({}, TensorOptions(kInt32)), wrong = zeros({}, TensorOptions(kLong));
  CHECK_THROWS_AS(_amp_update_scale_(scale, wrong, one(0), 2, 0.5, 1), ValueError);
  CHECK_THROWS_AS(_amp_update_scale_(scale, tracker, zeros({2}), 2, 0.5, 1), ValueError);
  CHECK(scale.item<float>() == 4);
}

TEST_CASE("a scale does not grow beyond float32") {
  Tensor scale = one(std::ldexp(1.0, 127)), tracker = zeros({}, TensorOptions(kInt32));
  _amp_update_scale_(scale, tracker, one(0), 2, 0.5, 1);
  CHECK(scale.item<double>() == std::ldexp(1.0, 127));
  CHECK(tracker.item<int>() == 0);
  _amp_update_scale_(scale, tracker, one(1), 2, 0.5, 1);
  CHECK(scale.item<double>() == std::ldexp(1.0, 126));
}

TEST_CASE("a skipped step leaves parameters and optimiser as they were") {
  Small s;
  s.backward(kInf);
  CHECK_FALSE(s.scaler.step(s.optimizer).defined());
  CHECK(s.scaler.step_was_skipped(s.optimizer));
  CHECK(s.w.equal(tensor(std::vector<float>{1, 2})));
  s.scaler.update();
  CHECK(s.scaler.get_scale() == 4);
  s.backward();
  s.scaler.step(s.optimizer);
  CHECK_FALSE(s.scaler.step_was_skipped(s.optimizer));
  CHECK(s.w.equal(tensor(std::vector<float>{0.5, 1.5})));
}

TEST_CASE("calls out of order are refused") {
  Small s;
  CHECK_THROWS_AS(s.scaler.unscale_(s.optimizer), Error);  // nothing was scaled yet
  CHECK_THROWS_AS(s.scaler.step(s.optimizer), Error);
  CHECK_THROWS_AS(s.scaler.update(), Error);
  s.backward();
  CHECK_THROWS_AS(s.scaler.update(), Error);  // there was no step
  CHECK_THROWS_AS(s.scaler.step(s.optimizer, [] { return Tensor(); }), Error);
  s.scaler.unscale_(s.optimizer);
  CHECK_THROWS_AS(s.scaler.unscale_(s.optimizer), Error);
  s.scaler.step(s.optimizer);
  CHECK_THROWS_AS(s.scaler.step(s.optimizer), Error);
  CHECK_THROWS_AS(s.scaler.unscale_(s.optimizer), Error);
  s.scaler.update();
  s.optimizer.zero_grad();
  CHECK_THROWS_AS(s.scaler.step(s.optimizer), Error);  // no gradient

  const Tensor half = ones({2}, TensorOptions(kFloat16)).requires_grad_();
  optim::SGD of_half({half}, optim::SGDOptions(0.1));
  s.scaler.scale(half.sum()).backward();
  CHECK_THROWS_AS(s.scaler.step(of_half), ValueError);
}

TEST_CASE("options outside their ranges are refused") {
  CHECK_THROWS_AS(GradScaler(GradScalerOptions().growth_factor(1)), ValueError);
  CHECK_THROWS_AS(GradScaler(GradScalerOptions().backoff_factor(1)), ValueError);
  CHECK_THROWS_AS(GradScaler(GradScalerOptions().growth_interval(0)), ValueError);
  CHECK_THROWS_AS(GradScaler(GradScalerOptions().init_scale(0)), ValueError);
  CHECK_THROWS_AS(GradScaler(GradScalerOptions().init_scale(1e39)), ValueError);
  GradScaler scaler;
  CHECK(scaler.get_scale() == 65536);
  CHECK_THROWS_AS(scaler.set_growth_factor(0.5), ValueError);
  CHECK(scaler.get_growth_factor() == 2);
  scaler.set_backoff_factor(0.1);
  CHECK(scaler.get_backoff_factor() == 0.1);
  scaler.set_growth_interval(7);
  CHECK(scaler.get_growth_interval() == 7);
}

TEST_CASE("a scale can be set") {
  Small s;
  CHECK_THROWS_AS(s.scaler.update(2), Error);
  s.backward();
  s.scaler.step(s.optimizer);
  CHECK_THROWS_AS(s.scaler.update(-1), ValueError);
  s.scaler.update(2);
  CHECK(s.scaler.get_scale() == 2);
  s.backward();
  CHECK(s.w.grad().eq(2).all().item<bool>());
}

TEST_CASE("a disabled scaler does nothing") {
  Small s;
  s.scaler = GradScaler(GradScalerOptions().enabled(false));
  const Tensor loss = s.w.sum();
  CHECK(s.scaler.scale(loss).is_same(loss));
  loss.backward();
  s.scaler.unscale_(s.optimizer);
  s.scaler.step(s.optimizer);
  s.scaler.update();
  CHECK(s.w.equal(tensor(std::vector<float>{0.5, 1.5})));
  CHECK(s.scaler.get_scale() == 1);
  CHECK(s.scaler.state_dict().is_empty());
  s.scaler.load_state_dict(GradScaler().state_dict());
  CHECK(s.scaler.get_scale() == 1);
}

TEST_CASE("a state dict carries a scaler over, before its first use and after") {
  Small s;
  s.backward();
  s.scaler.step(s.optimizer);
  s.scaler.update();
  s.scaler.set_growth_interval(2);
  const auto state = s.scaler.state_dict();
  CHECK(state.keys() ==
        std::vector<std::string>{"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"});
  Small fresh, used;
  fresh.scaler.load_state_dict(state);
  used.backward();
  used.scaler.load_state_dict(state);
  for (Small* other : {&fresh, &used}) {
    CHECK(other->scaler.get_growth_interval() == 2);
    other->backward();
    other->scaler.step(other->optimizer);
    other->scaler.update();
    CHECK(other->scaler.get_scale() == 16);  // one step before, one after
  }
  auto damaged = s.scaler.state_dict();
  damaged["growth_factor"].fill_(0.5);
  CHECK_THROWS_AS(fresh.scaler.load_state_dict(damaged), ValueError);
  CHECK_THROWS_AS(fresh.scaler.load_state_dict(optim::StateDict("state")), ValueError);
  CHECK(fresh.scaler.get_scale() == 16);
}
