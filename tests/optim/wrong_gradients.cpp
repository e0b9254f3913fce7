// Gradients and states that do not fit: typed errors that name what was wrong, and nothing changed. Under
// AddressSanitizer, no access outside of a tensor.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/optim/misfits.h"

using namespace rush;
using namespace rush::testing;

namespace {

// ---- optimisers, their states by name

struct Kind {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<optim::OptimizerParamGroup>&)> make;
  std::function<std::vector<Tensor*>(optim::OptimizerParamState&)> tensors;
  bool keeps_state;
  bool sparse;
};

template <class Optimizer, class State, class Options, class... Members>
Kind kind(std::string name, const Options& options, Members... members) {
  return {
      std::move(name), [=](const auto& groups) { return std::make_unique<Optimizer>(groups, options); },
      [=](optim::OptimizerParamState& state) { return std::vector<Tensor*>{&members(static_cast<State&>(state))...}; },
      sizeof...(Members) > 0, std::is_same_v<Optimizer, optim::SparseAdam>};
}

#define MEMBER(name) [](auto& state) -> Tensor& { return state.name(); }
std::vector<Kind> kinds() {
  using namespace optim;
  std::vector<Kind> all = {
      kind<SGD, SGDParamState>("SGD", SGDOptions(0.1)),
      kind<SGD, SGDParamState>("SGD", SGDOptions(0.1).momentum(0.9), MEMBER(momentum_buffer)),
      kind<Adam, AdamParamState>("Adam", AdamOptions(0.1), MEMBER(exp_avg), MEMBER(exp_avg_sq)),
      kind<Adam, AdamParamState>("Adam", AdamOptions(0.1).amsgrad(true), MEMBER(exp_avg), MEMBER(exp_avg_sq),
                                 MEMBER(max_exp_avg_sq)),
      kind<AdamW, AdamWParamState>("AdamW", AdamWOptions(0.1), MEMBER(exp_avg), MEMBER(exp_avg_sq)),
      kind<Adagrad, AdagradParamState>("Adagrad", AdagradOptions(0.1), MEMBER(sum)),
      kind<RMSprop, RMSpropParamState>("RMSprop", RMSpropOptions(0.1).momentum(0.9).centered(true), MEMBER(square_avg),
                                       MEMBER(grad_avg), MEMBER(momentum_buffer)),
      kind<Adadelta, AdadeltaParamState>("Adadelta", AdadeltaOptions(0.1), MEMBER(square_avg), MEMBER(acc_delta)),
      kind<NAdam, NAdamParamState>("NAdam", NAdamOptions(0.1), MEMBER(exp_avg), MEMBER(exp_avg_sq)),
      kind<RAdam, RAdamParamState>("RAdam", RAdamOptions(0.1), MEMBER(exp_avg), MEMBER(exp_avg_sq)),
      kind<Adamax, AdamaxParamState>("Adamax", AdamaxOptions(0.1), MEMBER(exp_avg), MEMBER(exp_inf)),
      kind<ASGD, ASGDParamState>("ASGD", ASGDOptions(0.1), MEMBER(ax)),
      kind<Rprop, RpropParamState>("Rprop", RpropOptions(0.1), MEMBER(prev), MEMBER(step_size)),
      kind<Adafactor, AdafactorParamState>("Adafactor", AdafactorOptions(0.1)),
      kind<Muon, MuonParamState>("Muon", MuonOptions(0.1), MEMBER(momentum_buffer)),
      kind<SparseAdam, SparseAdamParamState>("SparseAdam", SparseAdamOptions(0.1), MEMBER(exp_avg), MEMBER(exp_avg_sq)),
  };
  if (get_default_device().is_cpu()) return all;
  all.push_back(
      kind<SGD, SGDParamState>("SGD", SGDOptions(0.1).momentum(0.9).capturable(true), MEMBER(momentum_buffer)));
  all.push_back(
      kind<Adam, AdamParamState>("Adam", AdamOptions(0.1).capturable(true), MEMBER(exp_avg), MEMBER(exp_avg_sq)));
  all.push_back(kind<RMSprop, RMSpropParamState>("RMSprop", RMSpropOptions(0.1).capturable(true), MEMBER(square_avg)));
  all.push_back(
      kind<NAdam, NAdamParamState>("NAdam", NAdamOptions(0.1).capturable(true), MEMBER(exp_avg), MEMBER(exp_avg_sq)));
  return all;
}
#undef MEMBER

// Two groups; what is wrong is wrong with parameter 1 of group 1, the last that a step comes to.
struct Training {
  std::vector<Tensor> params;
  std::unique_ptr<optim::Optimizer> optimizer;
  const Kind& kind;

  explicit Training(const Kind& kind) : kind(kind) {
    for (const double shift : {0., 1., 2.}) params.push_back((waves({20, 25}) + shift).requires_grad_());
    std::vector<optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<Tensor>{params[0]});
    groups.emplace_back(std::vector<Tensor>{params[1], params[2]});
    optimizer = kind.make(groups);
    for (const Tensor& param : params) set_grad(param, waves({20, 25}));
  }
  const Tensor& bad() const { return params[2]; }
  void set_grad(const Tensor& param, const Tensor& grad) const {
    param.mutable_grad() = kind.sparse && grad.dim() > 0 && !grad.is_meta() ? grad.to_sparse(1) : grad;
  }
  std::vector<Tensor*> bad_states() const { return kind.tensors(*optimizer->state().at(bad().impl())); }
};

std::string contents_of(const Training& t) {
  std::string all;
  for (const Tensor& param : t.params) all += contents(param);
  for (const Tensor& param : t.params) {
    const auto found = t.optimizer->state().find(param.impl());
    if (found == t.optimizer->state().end()) continue;
    for (const Tensor* state : t.kind.tensors(*found->second)) all += contents(*state);
  }
  return all;
}

void check_step_refused(const std::string& name, const Training& t, const std::string& said) {
  check_refused(
      name, {t.kind.name + ": ", "parameter 1 of group 1", said}, [&] { t.optimizer->step(); },
      [&] { return contents_of(t); });
}

}  // namespace

TEST_CASE("an optimiser refuses a gradient of another shape, dtype or device, and changes nothing") {
  const std::vector<Misfit> all = misfits();
  CHECK(all.size() >= 30);
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    for (const bool first_step : {true, false}) {
      Training t(kind);
      if (!first_step) t.optimizer->step();
      for (const Misfit& misfit : all) {
        t.set_grad(t.bad(), misfit.tensor);
        // A sparse optimiser sees some of them as dense.
        check_step_refused(misfit.name, t, t.bad().grad().is_sparse() == kind.sparse ? said_of(misfit.tensor) : "");
      }
    }
  }
}

TEST_CASE("an optimiser refuses a state of another shape, dtype or device, and changes nothing") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    if (!kind.keeps_state) continue;
    Training t(kind);
    t.optimizer->step();
    for (const size_t which : {0, 1, 2}) {
      if (which >= t.bad_states().size()) continue;
      Tensor& state = *t.bad_states()[which];
      const Tensor kept = state;
      for (const Misfit& misfit : misfits()) {
        state = misfit.tensor;
        check_step_refused(misfit.name, t, said_of(misfit.tensor));
      }
      for (const ScalarType dtype : {kFloat64, kFloat16, kBFloat16}) {
        state = kept.to(dtype);
        check_step_refused(str("a state in ", dtype), t, str(dtype));
      }
      state = kept.to_sparse(1);
      check_step_refused("a sparse state", t, "layout");
      state = kept;
    }
    t.optimizer->step();  // what fits again is taken
  }
}

TEST_CASE("an optimiser refuses parameters that set_data has changed, and changes nothing") {
  const std::vector<std::vector<int64_t>> shapes = {{},       {1},   {21, 25}, {200, 250},
                                                    {25, 20}, {500}, {2, 2},   {20, 25, 2}};
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    for (const std::vector<int64_t>& sizes : shapes) {
      Training t(kind);
      t.optimizer->step();
      t.bad().set_data(waves(sizes));
      check_step_refused(str("the gradient's parameter now ", IntArrayRef(sizes)), t, str(IntArrayRef(sizes)));
      if (!t.optimizer->state().contains(t.bad().impl()) || sizes.empty()) continue;
      t.set_grad(t.bad(), waves(sizes));
      check_step_refused(str("the state's parameter now ", IntArrayRef(sizes)), t, str(IntArrayRef(sizes)));
    }
    Training t(kind);
    t.bad().set_data(waves({1, 25}).expand({20, 25}));
    check_step_refused("an expanded parameter", t, "share memory");
    Training u(kind);
    u.bad().requires_grad_(false).set_data(zeros({20, 25}, kInt64));
    check_step_refused("a parameter of integers", u, "int64");
    if (!kind.keeps_state) continue;
    Training v(kind);
    v.optimizer->state()[v.bad().impl()] = std::make_unique<optim::LBFGSParamState>();
    CHECK(refusal([&] { v.optimizer->step(); }) ==
          kind.name + ": the state of parameter 1 of group 1 is that of another kind of optimiser");
  }
}

TEST_CASE("parameters that were added behind the optimiser's back are refused where they cannot be") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Training t(kind);
    std::vector<Tensor>& params = t.optimizer->param_groups()[1].params();
    params[1] = Tensor();
    check_refused(
        "undefined", {kind.name, "parameter 1 of group 1", "undefined"}, [&] { t.optimizer->step(); },
        [&] { return contents_of(t); });
    params[1] = t.params[1];
    if (kind.keeps_state) check_step_refused("twice", t, "appears twice");
  }
}

TEST_CASE("LBFGS refuses gradients and states that do not fit, and changes nothing") {
  const Tensor a = waves({20, 25}).requires_grad_(), b = waves({20, 25}).requires_grad_();
  optim::LBFGS lbfgs({a, b}, optim::LBFGSOptions(0.1).max_iter(3));
  const auto loss_with = [&](const Tensor& grad_of_b) {
    return [&, grad_of_b] {
      a.mutable_grad() = a.detach() * 2;
      b.mutable_grad() = grad_of_b.defined() ? grad_of_b : b.detach() * 2;
      return (a.detach().square().sum() + b.detach().square().sum());
    };
  };
  lbfgs.step(loss_with({}));
  const auto unchanged = [&] {
    std::string all = contents(a) + contents(b);
    for (const auto& item : lbfgs.state_dict()) all += item.key() + contents(item.value());
    return all;
  };
  for (const Misfit& misfit : misfits()) {
    check_refused(
        misfit.name, {"LBFGS: ", "parameter 1 of group 0", said_of(misfit.tensor)},
        [&] { lbfgs.step(loss_with(misfit.tensor)); }, unchanged);
  }
  b.set_data(waves({500, 500}));
  check_refused(
      "larger parameters", {"LBFGS: the state d has shape (1000)"}, [&] { lbfgs.step(loss_with({})); },
      [&] { return contents(a) + contents(b); });
}

TEST_CASE("a state that lies otherwise in memory than its parameter is laid out anew") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Training t(kind), reference(kind);
    for (Training* each : {&t, &reference}) each->optimizer->step();
    t.bad().set_data(t.bad().detach().t().clone().t());  // the same elements, column by column
    for (Training* each : {&t, &reference}) each->optimizer->step();
    CHECK(t.bad().detach().equal(reference.bad().detach()));
  }
}

TEST_CASE("a gradient in another floating dtype is converted") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Training t(kind), reference(kind);
    for (const ScalarType dtype : {kFloat64, kFloat16, kBFloat16}) {
      const Tensor grad = waves({20, 25}, dtype);
      t.set_grad(t.bad(), grad);
      reference.set_grad(reference.bad(), grad.to(kFloat32));
      for (Training* each : {&t, &reference}) each->optimizer->step();
    }
    CHECK(t.bad().detach().equal(reference.bad().detach()));
  }
}

TEST_CASE("what looks at gradients refuses those that do not fit, and changes nothing") {
  const Tensor a = waves({20, 25}).requires_grad_(), b = waves({20, 25}).requires_grad_();
  a.mutable_grad() = waves({20, 25}) * 100;
  const auto unchanged = [&] { return contents(a.grad()) + contents(b.grad()); };
  optim::SGD sgd({a, b}, optim::SGDOptions(0.1));
  for (const Misfit& misfit : misfits()) {
    b.mutable_grad() = misfit.tensor;
    const std::string said = said_of(misfit.tensor);
    const std::vector<std::string> clipped = {"clip_grad: the gradient of parameter 1 ", said};
    check_refused(
        misfit.name, clipped,
        [&] {
          nn::utils::clip_grad_norm_({a, b}, 1);
        },
        unchanged);
    check_refused(
        misfit.name, clipped,
        [&] {
          nn::utils::clip_grad_value_({a, b}, 0.1);
        },
        unchanged);
    check_refused(
        misfit.name, clipped,
        [&] {
          nn::utils::clip_grads_with_norm_({a, b}, 1, full({}, 100.));
        },
        unchanged);
    amp::GradScaler scaler;
    scaler.scale(ones({}));
    check_refused(
        misfit.name, {"GradScaler: the gradient of parameter 1 of group 0 ", said}, [&] { scaler.unscale_(sgd); },
        unchanged);
    check_refused(
        misfit.name, {"backward: the gradient that there is", said}, [&] { b.sum().backward(); }, unchanged);
  }
  b.mutable_grad() = waves({1, 25}).expand({20, 25});
  for (const bool by_norm : {true, false}) {
    check_refused(
        "an expanded gradient", {"clip_grad: the gradient of parameter 1 ", "share memory"},
        [&] {
          by_norm ? void(nn::utils::clip_grad_norm_({a, b}, 1)) : nn::utils::clip_grad_value_({a, b}, 0.1);
        },
        unchanged);
  }
  const Tensor c = waves({20, 25}, kComplex64).requires_grad_();
  c.mutable_grad() = waves({20, 25}, kComplex64);
  check_refused(
      "a complex gradient", {"clip_grad_value_: "},
      [&] {
        nn::utils::clip_grad_value_({a, c}, 0.1);
      },
      unchanged);
  CHECK(refusal([&] { nn::utils::clip_grad_norm_({a, Tensor()}, 1); }) == "clip_grad: parameter 1 is undefined");
  CHECK(refusal([&] { nn::utils::parameters_to_vector({a, Tensor()}); }).find("undefined") != std::string::npos);
  CHECK(refusal([&] {
          nn::utils::vector_to_parameters(waves({500}), {a, Tensor()});
        }).find("undefined") != std::string::npos);
  CHECK(refusal([&] { nn::utils::vector_to_parameters(Tensor(), {a}); }).find("undefined") != std::string::npos);
  CHECK(refusal([&] { nn::utils::vector_to_parameters(waves({501}), {a}); }).find("501") != std::string::npos);
}

TEST_CASE("a hook must keep the gradient's shape, dtype and device") {
  std::vector<Misfit> all = misfits();
  for (const ScalarType dtype : {kFloat64, kFloat16, kBFloat16}) all.push_back({str(dtype), waves({20, 25}, dtype)});
  for (const Misfit& misfit : all) {
    for (const bool on_leaf : {true, false}) {
      for (const bool in_place : {true, false}) {
        const Tensor leaf = waves({20, 25}).requires_grad_();
        const Tensor inner = leaf * 2;
        const auto hook = [&](const Tensor& grad) {
          if (!in_place) return misfit.tensor;
          grad.set_data(misfit.tensor);
          return Tensor();
        };
        (on_leaf ? leaf : inner).register_hook(hook);
        check_refused(
            misfit.name, {"register_hook: a hook made a gradient", said_of(misfit.tensor)},
            [&] { inner.sum().backward(); }, [&] { return contents(leaf.grad()); });
      }
    }
  }
}
