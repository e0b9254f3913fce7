// Every allocation of an optimiser's step fails once, and for good: parameters and state are as before, and the step
// repeated gives the same bits as one that was never disturbed.
#include "tests/failing_allocations.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rushlight.h"

using namespace rush;
using testing::FailingAllocations;

namespace {

constexpr int kSteps = 3;

// A training in small: parameters of every kind that a step treats in its own way, in two groups.
struct Training {
  std::vector<Tensor> params;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::shared_ptr<amp::GradScaler> scaler;
  std::function<void(Training&)> step = [](Training& t) { t.optimizer->step(); };
};
using Groups = std::vector<optim::OptimizerParamGroup>;

Tensor waves(IntArrayRef sizes, ScalarType dtype, double phase) {
  const Tensor t = arange(0, checked_numel(sizes), kFloat64).reshape(sizes);
  return ((t * 0.7 + phase).sin() * 2).to(dtype);
}

std::vector<Tensor> dense_params() {
  std::vector<Tensor> params = {waves({7}, kFloat32, 0),
                                waves({3, 5}, kFloat32, 1).t(),
                                waves({5, 3}, kFloat32, 2).select(1, 1).detach(),
                                waves({2, 3}, kFloat64, 3),
                                view_as_complex(waves({4, 2}, kFloat32, 4)),
                                waves({6}, kBFloat16, 5)};
  for (const Tensor& param : params) param.requires_grad_();
  return params;
}

// Gradients of another layout, and for some steps none.
void set_dense_grads(Training& t, int step) {
  for (size_t i = 0; i < t.params.size(); ++i) {
    const Tensor& p = t.params[i];
    Tensor& grad = t.params[i].mutable_grad();
    if (i == 3 && step == 0) {
      grad.reset();
    } else if (p.is_complex()) {
      grad = view_as_complex(waves({4, 2}, kFloat32, step));
    } else {
      grad = i == 0 ? waves({7, 2}, kFloat32, step).select(1, 1)
                    : waves(p.sizes(), i == 5 ? kFloat32 : p.scalar_type(), step + static_cast<double>(i));
    }
  }
}

std::vector<Tensor> matrix_params() {
  std::vector<Tensor> params = {waves({3, 5}, kFloat32, 0).t(), waves({5, 3}, kFloat32, 1), waves({2, 3}, kFloat64, 2),
                                waves({4, 2}, kBFloat16, 3)};
  for (const Tensor& param : params) param.requires_grad_();
  return params;
}

void set_matrix_grads(Training& t, int step) {
  for (const Tensor& p : t.params) p.mutable_grad() = waves(p.sizes(), p.scalar_type(), step);
}

void set_sparse_grads(Training& t, int step) {
  for (const Tensor& p : t.params) {
    const Tensor rows = tensor(std::vector<int64_t>{4, 1, 4, step}).reshape({1, 4});
    DimVector sizes(p.sizes());
    sizes[0] = 4;
    p.mutable_grad() = sparse_coo_tensor(rows, waves(sizes, p.scalar_type(), step), p.sizes());
  }
}

std::vector<Tensor> sparse_params() {
  std::vector<Tensor> params = {waves({5, 3}, kFloat32, 0), waves({3, 5}, kFloat64, 1).t(),
                                waves({6, 2, 2}, kFloat32, 2)};
  for (const Tensor& param : params) param.requires_grad_();
  return params;
}

struct Case {
  std::string name;
  std::function<Training()> make;
  void (*set_grads)(Training&, int step) = set_dense_grads;
};

// The last two parameters are a group of their own.
template <class Optimizer, class Options>
Training in_two_groups(std::vector<Tensor> params, const Options& options) {
  Training t{params, nullptr, nullptr};
  const auto last = params.end() - (params.size() > 3 ? 2 : 1);
  Groups groups;
  groups.emplace_back(std::vector<Tensor>(params.begin(), last));
  groups.emplace_back(std::vector<Tensor>(last, params.end()), std::make_unique<Options>(Options(options).lr(0.05)));
  t.optimizer = std::make_unique<Optimizer>(groups, options);
  return t;
}

template <class Optimizer, class Options>
Case dense(std::string name, const Options& options) {
  return {std::move(name), [=] { return in_two_groups<Optimizer>(dense_params(), options); }};
}
template <class Optimizer, class Options>
Case matrices(std::string name, const Options& options) {
  return {std::move(name), [=] { return in_two_groups<Optimizer>(matrix_params(), options); }, set_matrix_grads};
}
template <class Optimizer, class Options>
Case sparse(std::string name, const Options& options) {
  return {std::move(name), [=] { return in_two_groups<Optimizer>(sparse_params(), options); }, set_sparse_grads};
}

Case scaled() {
  // A state of the scaler that a failed step has half changed would show in the next.
  return {"GradScaler",
          [] {
            Training t = in_two_groups<optim::Adam>(dense_params(), optim::AdamOptions(0.1));
            t.scaler = std::make_shared<amp::GradScaler>(amp::GradScalerOptions().init_scale(8));
            t.scaler->scale(ones({}));
            t.step = [](Training& each) { each.scaler->step(*each.optimizer); };
            return t;
          },
          [](Training& t, int step) {
            t.scaler->update(8);
            set_dense_grads(t, step);
            t.params[4].mutable_grad().reset();  // complex gradients are not for it
          }};
}

Case lbfgs(bool searches) {
  return {searches ? "LBFGS with a line search" : "LBFGS",
          [=] {
            Training t{{waves({5}, kFloat64, 0).requires_grad_(), waves({4, 3}, kFloat64, 1).t().requires_grad_()},
                       nullptr,
                       nullptr};
            optim::LBFGSOptions options(0.5);
            options.max_iter(3);
            if (searches) options.line_search_fn("strong_wolfe");
            t.optimizer = std::make_unique<optim::LBFGS>(t.params, options);
            t.step = [](Training& each) {
              // Gradients by formula: this is about the step, not about the backward pass.
              each.optimizer->step([&] {
                Tensor loss = zeros({}, kFloat64);
                for (const Tensor& param : each.params) {
                  const NoGradGuard no_grad;
                  const Tensor slack = param.square() - 1;
                  loss = loss + slack.square().sum();
                  param.mutable_grad() = 4 * param * slack;
                }
                return loss;
              });
            };
            return t;
          },
          [](Training&, int) {}};
}

std::vector<Case> cases() {
  using namespace optim;
  return {dense<SGD>("SGD", SGDOptions(0.1)),
          dense<SGD>("SGD with momentum", SGDOptions(0.1).momentum(0.9).dampening(0.5)),
          dense<Adam>("Adam", AdamOptions(0.1)),
          dense<Adam>("Adam with AMSGrad", AdamOptions(0.1).amsgrad(true)),
          dense<AdamW>("AdamW", AdamWOptions(0.1)),
          dense<Adagrad>("Adagrad", AdagradOptions(0.1).initial_accumulator_value(0.5)),
          dense<RMSprop>("RMSprop", RMSpropOptions(0.1).momentum(0.9).centered(true)),
          dense<Adadelta>("Adadelta", AdadeltaOptions(0.5)),
          dense<NAdam>("NAdam", NAdamOptions(0.1)),
          dense<RAdam>("RAdam", RAdamOptions(0.1)),
          dense<Adamax>("Adamax", AdamaxOptions(0.1)),
          dense<ASGD>("ASGD", ASGDOptions(0.1)),
          dense<Rprop>("Rprop", RpropOptions(0.1)),
          matrices<Adafactor>("Adafactor", AdafactorOptions(0.1)),
          matrices<Muon>("Muon", MuonOptions(0.1)),
          sparse<SGD>("SGD, sparse", SGDOptions(0.1)),
          sparse<SparseAdam>("SparseAdam", SparseAdamOptions(0.1)),
          lbfgs(false),
          lbfgs(true),
          scaled()};
}

std::string bits(const Tensor& tensor) {
  const Tensor row_major = tensor.detach().contiguous();
  return std::string(static_cast<const char*>(row_major.data_ptr()), static_cast<size_t>(row_major.nbytes()));
}

// Parameters and state, to the last bit.
std::string bits(const Training& t) {
  std::string all;
  for (const Tensor& param : t.params) all += bits(param);
  for (const auto& item : t.optimizer->state_dict()) all += item.key() + bits(item.value());
  return all;
}

void take(const Case& c, Training& t, int step) {
  c.set_grads(t, step);
  t.step(t);
}

// Whether step number `step` failed when its allocation number `at` did. It is repeated then.
bool fails_at(const Case& c, const std::vector<std::string>& undisturbed, int step, int64_t at, bool for_good,
              int& wrong) {
  Training t = c.make();
  for (int i = 0; i < step; ++i) take(c, t, i);
  c.set_grads(t, step);
  const std::string before = bits(t);
  bool failed = false, thrown = false;
  {
    const FailingAllocations refused(at, for_good);
    try {
      t.step(t);
    } catch (const OutOfMemoryError&) {
      thrown = true;
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    failed = refused.failed();
  }
  const auto complain = [&](const char* what) {
    std::printf("%s, step %d, allocation %lld%s: %s\n", c.name.c_str(), step, static_cast<long long>(at),
                for_good ? " and all after it" : "", what);
    ++wrong;
  };
  if (thrown) {
    if (bits(t) != before) complain("the failed step has changed something");
    t.step(t);
  }
  if (bits(t) != undisturbed[static_cast<size_t>(step)]) complain("other bits after the step");
  for (int i = step + 1; i < kSteps; ++i) take(c, t, i);
  if (bits(t) != undisturbed.back()) complain("other bits in the end");
  return failed;
}

int run(const Case& c) {
  std::vector<std::string> undisturbed;
  Training t = c.make();
  for (int step = 0; step < kSteps; ++step) {
    take(c, t, step);
    undisturbed.push_back(bits(t));
  }
  int wrong = 0;
  int64_t points = 0;
  for (const int step : {0, 1}) {
    for (const bool for_good : {false, true}) {
      int64_t at = 1;
      while (wrong < 10 && fails_at(c, undisturbed, step, at, for_good, wrong)) ++at;
      points += at - 1;
    }
  }
  std::printf("%-28s %5lld points, %d wrong\n", c.name.c_str(), static_cast<long long>(points), wrong);
  return wrong + (points == 0 ? 1 : 0);
}

}  // namespace

int main() {
  testing::FailingAllocator::install();
  int wrong = 0;
  for (const Case& c : cases()) wrong += run(c);
  return wrong == 0 ? 0 : 1;
}
