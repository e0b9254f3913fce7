// Operators and kernels on lists of tensors that do not go together: typed errors, and nothing changed.
#include <functional>

#include "backends/functors/optim.h"
#include "core/ops/optim/amp.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/pointwise/cast_all.h"
#include "tests/optim/misfits.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("operators on lists refuse what does not go together, and change nothing") {
  const auto device = [](const Tensor& t) { return t.to(other_device()); };
  const Tensor a = waves({6, 5}), b = waves({7}), half = waves({3}, kFloat16), wide = waves({3}, kFloat64);
  const Tensor whole = ones({3}, kInt64), none, elsewhere = device(waves({3})), twice = waves({1}).expand({3});
  const Tensor one = full({}, 0.5), inf = zeros({}), sparse = waves({3, 3}).to_sparse(),
               leaf = waves({3}).requires_grad_();
  const Tensor scale = full({}, 8.), tracker = zeros({}, kInt32);
  const auto unscale = [&](std::vector<Tensor> grads, const Tensor& found, const Tensor& inverse) {
    return [=] { _amp_foreach_non_finite_check_and_unscale_(grads, found, inverse); };
  };
  const auto multiply = [&](std::vector<Tensor> tensors, const Tensor& factor) {
    return [=] { _foreach_mul_(tensors, factor); };
  };
  const auto update = [&](Tensor number, Tensor counter, Tensor found) {
    return [=]() mutable { _amp_update_scale_(number, counter, found, 2, 0.5, 10); };
  };
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"unscale: an undefined gradient", unscale({a, none}, inf, one)},
      {"unscale: the first gradient undefined", unscale({none, a}, inf, one)},
      {"unscale: another dtype", unscale({a, wide}, inf, one)},
      {"unscale: integers", unscale({whole}, inf, one)},
      {"unscale: another device", unscale({a, elsewhere}, inf, one)},
      {"unscale: an expanded gradient", unscale({a, twice}, inf, one)},
      {"unscale: a sparse gradient", unscale({a, sparse}, inf, one)},
      {"unscale: no found_inf", unscale({a}, none, one)},
      {"unscale: a vector as found_inf", unscale({a}, b, one)},
      {"unscale: found_inf on another device", unscale({a}, device(inf), one)},
      {"unscale: found_inf in float64", unscale({a}, zeros({}, kFloat64), one)},
      {"unscale: no inv_scale", unscale({a}, inf, none)},
      {"unscale: a vector as inv_scale", unscale({a}, inf, b)},
      {"unscale: inv_scale on another device", unscale({a}, inf, device(one))},
      {"unscale: inv_scale in float64", unscale({a}, inf, one.to(kFloat64))},
      {"update_scale: no scale", update(none, tracker, inf)},
      {"update_scale: a scale in float64", update(one.to(kFloat64), tracker, inf)},
      {"update_scale: a vector as scale", update(b, tracker, inf)},
      {"update_scale: a tracker in int64", update(scale, zeros({}, kInt64), inf)},
      {"update_scale: no tracker", update(scale, none, inf)},
      {"update_scale: found_inf on another device", update(scale, tracker, device(inf))},
      {"mul: an empty list", multiply({}, one)},
      {"mul: an undefined tensor", multiply({a, none}, one)},
      {"mul: no factor", multiply({a}, none)},
      {"mul: a vector as factor", multiply({a}, b)},
      {"mul: integers by a fraction", multiply({a, whole}, one)},
      {"mul: real numbers by a complex one", multiply({a}, full({}, 2, kComplex64))},
      {"mul: a tensor on another device than the factor", multiply({a, elsewhere}, one.is_cpu() ? device(one) : one)},
      {"mul: an expanded tensor", multiply({a, twice}, one)},
      {"norms: an empty list", [&] { foreach_norms(std::vector<Tensor>()); }},
      {"norms: an undefined tensor",
       [&] {
         foreach_norms({a, none});
       }},
      {"norms: another dtype",
       [&] {
         foreach_norms({a, half});
       }},
      {"norms: another device",
       [&] {
         foreach_norms({a, elsewhere});
       }},
      {"norms: integers", [&] { foreach_norms({whole}); }},
      {"total norm: an undefined tensor",
       [&] {
         foreach_total_norm({a, none});
       }},
      {"total norm: another dtype",
       [&] {
         foreach_total_norm({a, half});
       }},
      {"total norm: another device",
       [&] {
         foreach_total_norm({a, elsewhere});
       }},
      {"foreach_norm: an undefined tensor",
       [&] {
         _foreach_norm({a, none});
       }},
      {"foreach_norm: integers",
       [&] {
         _foreach_norm({a, whole});
       }},
      {"cast_all: an undefined tensor",
       [&] {
         cast_all({a, none}, kBFloat16);
       }},
      {"cast_all: to integers",
       [&] {
         cast_all({a, b}, kInt32);
       }},
      {"cast_all: of integers",
       [&] {
         cast_all({a, whole}, kBFloat16);
       }},
      {"cast_all: another device",
       [&] {
         cast_all({a, elsewhere}, kBFloat16);
       }},
      {"cast_all: a sparse tensor",
       [&] {
         cast_all({a, sparse}, kBFloat16);
       }},
  };
  const auto unchanged = [&] {
    std::string all;
    for (const Tensor& t : {a, b, half, wide, whole, twice, leaf, inf, one, scale, tracker}) all += contents(t);
    return all;
  };
  for (const auto& [name, call] : calls) {
    CAPTURE(name);
    const std::string before = unchanged();
    CHECK(refusal(call) != "nothing was thrown");
    CHECK(unchanged() == before);
  }
  const std::string before = unchanged();
  CHECK_THROWS_AS(_foreach_mul_({a, leaf}, one), Error);
  CHECK(unchanged() == before);
}

TEST_CASE("the kernels of steps refuse lists that do not go together, and change nothing") {
  const DeviceType device = get_default_device().type;
  const Tensor p = waves({20, 25}), q = waves({20, 25}) + 1;
  std::vector<Misfit> all = misfits();
  for (const ScalarType dtype : {kFloat64, kFloat16}) all.push_back({str(dtype), waves({20, 25}, dtype)});
  all.push_back({"other strides", waves({25, 20}).t()});
  all.push_back({"undefined", Tensor()});
  const std::vector<Tensor> good = {waves({20, 25}), waves({20, 25})}, params = {p, q};
  const std::vector<int64_t> steps = {1, 1};
  const std::vector<double> products = {0.5, 0.5};
  const auto unchanged = [&] { return contents(p) + contents(q) + contents(good[0]) + contents(good[1]); };
  // Each kernel with one list of its own replaced.
  using List = std::vector<Tensor>;
  const std::vector<std::pair<const char*, std::function<void(const List& g, const List& s)>>> kernels = {
      {"SGD",
       [&](const List& g, const List& s) {
         kernels::fused_step<SgdStep>(device, params, g, s, {}, {}, {}, {}, {0.1, 0.9, 0, 0, false, false, false});
       }},
      {"Adam",
       [&](const List& g, const List& s) {
         kernels::fused_step<AdamStep>(device, params, g, good, s, {}, steps, {},
                                       {0.1, 0.9, 0.99, 1e-8, 0, false, false, false});
       }},
      {"Adam",
       [&](const List& g, const List& s) {
         kernels::fused_step<AdamStep>(device, params, g, good, good, s, steps, {},
                                       {0.1, 0.9, 0.99, 1e-8, 0, true, false, false});
       }},
      {"Adadelta",
       [&](const List& g, const List& s) {
         kernels::fused_step<AdadeltaStep>(device, params, g, good, s, {}, {}, {}, {0.1, 0.9, 1e-8, 0, false});
       }},
      {"RMSprop",
       [&](const List& g, const List& s) {
         kernels::fused_step<RmsPropStep>(device, params, g, good, good, s, {}, {},
                                          {0.1, 0.9, 1e-8, 0, 0.9, true, false});
       }},
      {"Adagrad",
       [&](const List& g, const List& s) {
         kernels::fused_step<AdagradStep>(device, params, g, s, {}, {}, steps, {}, {0.1, 0, 0, 0, 1e-8, false});
       }},
      {"NAdam",
       [&](const List& g, const List& s) {
         kernels::fused_step<NAdamStep>(device, params, g, good, s, {}, steps, products,
                                        {0.1, 0.9, 0.99, 1e-8, 0, 4e-3, false, false});
       }},
      {"RAdam",
       [&](const List& g, const List& s) {
         kernels::fused_step<RAdamStep>(device, params, g, s, good, {}, steps, {},
                                        {0.1, 0.9, 0.99, 1e-8, 0, false, false});
       }},
      {"Adamax",
       [&](const List& g, const List& s) {
         kernels::fused_step<AdamaxStep>(device, params, g, good, s, {}, steps, {}, {0.1, 0.9, 0.99, 1e-8, 0, false});
       }},
      {"ASGD",
       [&](const List& g, const List& s) {
         kernels::fused_step<AsgdStep>(device, params, g, s, {}, {}, steps, {}, {0.1, 1e-4, 0.75, 1e6, 0, false});
       }},
      {"Rprop",
       [&](const List& g, const List& s) {
         kernels::fused_step<RpropStep>(device, params, g, s, good, {}, {}, {}, {0.1, 0.5, 1.2, 1e-6, 50, false});
       }},
  };
  for (const auto& [name, kernel] : kernels) {
    CAPTURE(name);
    const std::string op = std::string(name) + ": ";
    for (const Misfit& misfit : all) {
      const List wrong = {good[0], misfit.tensor};
      check_refused(
          misfit.name, {op, "parameter 1"}, [&] { kernel(wrong, good); }, unchanged);
      check_refused(
          misfit.name, {op, "parameter 1"}, [&] { kernel(good, wrong); }, unchanged);
    }
    for (const List& wrong : {List{}, List{good[0]}, List{good[0], good[1], good[1]}}) {
      check_refused(
          "lists of other lengths", {op, str(wrong.size())}, [&] { kernel(wrong, good); }, unchanged);
      check_refused(
          "lists of other lengths", {op, str(wrong.size())}, [&] { kernel(good, wrong); }, unchanged);
    }
  }
  const std::vector<int64_t> few = {1};
  check_refused(
      "too few steps", {"RAdam: got 1 numbers for 2 parameters"},
      [&] {
        kernels::fused_step<RAdamStep>(device, params, good, good, good, {}, few, {},
                                       {0.1, 0.9, 0.99, 1e-8, 0, false, false});
      },
      unchanged);
  check_refused(
      "parameters of two dtypes", {"Adadelta: parameters are of float32 and float64"},
      [&] {
        kernels::fused_step<AdadeltaStep>(device, {p, waves({20, 25}, kFloat64)}, good, good, good, {}, {}, {},
                                          {0.1, 0.9, 1e-8, 0, false});
      },
      unchanged);
}
