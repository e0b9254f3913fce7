#include "core/ops/optim/optim.h"

#include <tuple>

#include "backends/cpu/optim/stretches.h"
#include "backends/cpu/register.h"
#include "backends/functors/optim.h"

namespace rush::cpu {

namespace {

// step(p[k], g[k], states[k]...) for one stretch, written back but for the gradient. The functor comes by value and the
// pointers restricted: so the loop vectorises.
template <class T, class Step, class... State>
RUSH_NOINLINE void run_stretch(Step step, int64_t n, T* __restrict p, const T* __restrict g,
                               State* __restrict... states) {
  using Math = opmath_t<T>;
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) {
    Math param = static_cast<Math>(p[k]);
    std::tuple<decltype(Math(*states))...> values(static_cast<Math>(states[k])...);
    std::apply([&](auto&... each) { step(param, static_cast<Math>(g[k]), each...); }, values);
    p[k] = static_cast<T>(param);
    std::apply([&](auto&... each) { ((states[k] = static_cast<T>(each)), ...); }, values);
  }
}

// Takes step_of(i) on tensor number i of all lists.
template <class T, class StepOf, class... States>
void run_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads, const States&... states) {
  native::check_step_lists(op, params, {grads, states...});
  for_each_stretch(params, [&](size_t i, int64_t begin, int64_t n) {
    run_stretch(step_of(i), n, params[i].data_ptr<T>() + begin, static_cast<const T*>(grads[i].data_ptr<T>() + begin),
                (states[i].template data_ptr<T>() + begin)...);
  });
}

struct SgdLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
    const functors::Sgd<opmath_t<T>> sgd(step);
    const auto step_of = [&](size_t) { return sgd; };
    if (step.momentum == 0) return run_steps<T>("SGD", step_of, params, grads);
    run_steps<T>("SGD", step_of, params, grads, buffers);
  }
};

struct AdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                  ArrayRef<int64_t> steps, const AdamStep& step) {
    native::check_step_numbers("Adam", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::Adam<opmath_t<T>>(step, steps[i]); };
    if (!step.amsgrad) return run_steps<T>("Adam", step_of, params, grads, means, squares);
    run_steps<T>("Adam", step_of, params, grads, means, squares, max_squares);
  }
};

struct AdadeltaLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                  const AdadeltaStep& step) {
    const functors::Adadelta<opmath_t<T>> adadelta(step);
    run_steps<T>(
        "Adadelta", [&](size_t) { return adadelta; }, params, grads, squares, deltas);
  }
};

struct RmsPropLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                  const RmsPropStep& step) {
    const functors::RmsProp<opmath_t<T>> rmsprop(step);
    functors::with_states(step, means, buffers, [&](const auto&... states) {
      run_steps<T>(
          "RMSprop", [&](size_t) { return rmsprop; }, params, grads, squares, states...);
    });
  }
};

struct AdagradLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                  const AdagradStep& step) {
    native::check_step_numbers("Adagrad", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::Adagrad<opmath_t<T>>(step, steps[i]); };
    run_steps<T>("Adagrad", step_of, params, grads, sums);
  }
};

struct NAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                  ArrayRef<double> mu_products, const NAdamStep& step) {
    native::check_step_numbers("NAdam", params, steps.size());
    native::check_step_numbers("NAdam", params, mu_products.size());
    const auto step_of = [&](size_t i) { return functors::NAdam<opmath_t<T>>(step, steps[i], mu_products[i]); };
    run_steps<T>("NAdam", step_of, params, grads, means, squares);
  }
};

struct RAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                  const RAdamStep& step) {
    native::check_step_numbers("RAdam", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::RAdam<opmath_t<T>>(step, steps[i]); };
    run_steps<T>("RAdam", step_of, params, grads, means, squares);
  }
};

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
  if (params.empty()) return;
  pick<SgdLoop>(RealFloatTypes(), params[0].scalar_type(), "SGD")(params, grads, buffers, step);
}

void fused_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                ArrayRef<int64_t> steps, const AdamStep& step) {
  if (params.empty()) return;
  pick<AdamLoop>(RealFloatTypes(), params[0].scalar_type(), "Adam")(params, grads, means, squares, max_squares, steps,
                                                                    step);
}

void fused_adadelta(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                    const AdadeltaStep& step) {
  if (params.empty()) return;
  pick<AdadeltaLoop>(RealFloatTypes(), params[0].scalar_type(), "Adadelta")(params, grads, squares, deltas, step);
}

void fused_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                   const RmsPropStep& step) {
  if (params.empty()) return;
  pick<RmsPropLoop>(RealFloatTypes(), params[0].scalar_type(), "RMSprop")(params, grads, squares, means, buffers, step);
}

void fused_adagrad(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                   const AdagradStep& step) {
  if (params.empty()) return;
  pick<AdagradLoop>(RealFloatTypes(), params[0].scalar_type(), "Adagrad")(params, grads, sums, steps, step);
}

void fused_nadam(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                 ArrayRef<double> mu_products, const NAdamStep& step) {
  if (params.empty()) return;
  pick<NAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "NAdam")(params, grads, means, squares, steps, mu_products,
                                                                      step);
}

void fused_radam(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                 const RAdamStep& step) {
  if (params.empty()) return;
  pick<RAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "RAdam")(params, grads, means, squares, steps, step);
}

}  // namespace

void register_optim() {
  kernels::fused_sgd.set(kCPU, fused_sgd);
  kernels::fused_adam.set(kCPU, fused_adam);
  kernels::fused_adadelta.set(kCPU, fused_adadelta);
  kernels::fused_rmsprop.set(kCPU, fused_rmsprop);
  kernels::fused_adagrad.set(kCPU, fused_adagrad);
  kernels::fused_nadam.set(kCPU, fused_nadam);
  kernels::fused_radam.set(kCPU, fused_radam);
}

}  // namespace rush::cpu
