#include "core/ops/optim/optim.h"

#include <tuple>

#include "backends/cpu/optim/chunks.h"
#include "backends/cpu/register.h"
#include "backends/functors/step_kernels.h"

namespace rush::cpu {

namespace {

// Calls step(p[k], g[k], states[k]...) for one chunk, and stores p and the states. The functor is passed by value and
// the pointers are __restrict, so that the loop vectorises.
template <class T, class Step, class... State>
RUSH_NOINLINE void run_chunk(Step step, int64_t n, T* __restrict p, const T* __restrict g,
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

struct CpuSteps {
  // Takes step_of(i) on tensor number i of all lists.
  template <class T, class StepOf, class... States>
  static void run_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads,
                        const States&... states) {
    native::check_step_lists(op, params, {grads, states...});
    for_each_chunk(params, [&](size_t i, int64_t begin, int64_t n) {
      run_chunk(step_of(i), n, params[i].data_ptr<T>() + begin, static_cast<const T*>(grads[i].data_ptr<T>() + begin),
                (states[i].template data_ptr<T>() + begin)...);
    });
  }
};

}  // namespace

void register_optim() { functors::set_steps<CpuSteps>(kCPU); }

}  // namespace rush::cpu
