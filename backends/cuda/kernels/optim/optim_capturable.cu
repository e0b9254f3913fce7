// Steps of optimisers with numbers that lie on the device: Note [Capturable optimisers].
#include <algorithm>

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pick.h"
#include "backends/cuda/register.h"
#include "backends/functors/optim.h"
#include "backends/functors/optional_data.h"

namespace rush::cuda {

namespace {

// Makes the functor of a parameter's step number t from the numbers of its group. `mu_product` is NAdam's product of
// momenta, which this step multiplies; null for all others.
template <class Made, class Step>
struct MakeFunctor {
  using Functor = Made;
  Step step;
  __device__ Functor operator()(const double* numbers, int64_t t, double* mu_product) const {
    Step now = step;
    now.take(numbers);
    double product = 0;
    if constexpr (functors::needs_product<Functor, Step>) product = *mu_product *= functors::momentum_at(now, t);
    if constexpr (requires { now.first; }) now.first = t == 1;
    return functors::make_functor<Functor>(now, t, product);
  }
};

// What the parameters of one launch count on the device.
struct Counters {
  static constexpr int kMost = 240;  // 3,840 of the 4,096 bytes of a launch's arguments
  int64_t* steps[kMost];
  double* mu_products[kMost];
};

// A thread a parameter: counts its step and makes its functor.
template <class Make>
__global__ void make_functors(const __grid_constant__ Counters counters, int n, const double* numbers,
                              const float* found_inf, Make make, typename Make::Functor* made) {
  static_assert(sizeof(Counters) + sizeof(Make) + 40 <= 4096);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n || (found_inf && *found_inf != 0)) return;
  made[i] = make(numbers, ++*counters.steps[i], counters.mu_products[i]);
}

// Makes a functor for each parameter, in the memory that the step brings for them.
template <class Make>
const typename Make::Functor* make_functors_of(const char* op, const DeviceStep& on_device, const Make& make) {
  using Functor = typename Make::Functor;
  static_assert(sizeof(Functor) <= kFunctorBytes);
  auto* made = static_cast<Functor*>(on_device.functors.data_ptr());
  const size_t count = on_device.steps.size();
  for (size_t begin = 0; begin < count; begin += Counters::kMost) {
    const size_t n = std::min(count - begin, static_cast<size_t>(Counters::kMost));
    Counters counters{};
    for (size_t i = 0; i < n; ++i) {
      counters.steps[i] = on_device.steps[begin + i].data_ptr<int64_t>();
      if (on_device.mu_products.empty()) continue;
      counters.mu_products[i] = on_device.mu_products[begin + i].data_ptr<double>();
    }
    const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
    launch_kernel(op, make_functors<Make>, {blocks, kThreads}, counters, static_cast<int>(n),
                  on_device.numbers.data_ptr<double>(), data_or_null<float>(on_device.found_inf), make, made + begin);
  }
  return made;
}

template <class Rule>
struct CapturableSteps {
  using Step = typename Rule::Step;

  template <class T>
  static void run(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                  const DeviceStep& on_device, const Step& step) {
    using Math = opmath_t<T>;
    using Functor = typename Rule::template Functor<Math>;
    functors::with_states<Functor, Math>(step, {states0, states1, states2}, [&](const auto&... states) {
      native::check_step_lists(Step::kName, params, {grads, states...});
      native::check_step_numbers(Step::kName, params, on_device.steps.size());
      functors::check_numbers<Functor, Step>(params, on_device.steps.size(), on_device.mu_products.size());
      const Functor* made = make_functors_of(Step::kName, on_device, MakeFunctor<Functor, Step>{step});
      const float* found = data_or_null<float>(on_device.found_inf);
      const auto step_of = [&](size_t i) { return OnDevice<Functor>{made + i, found}; };
      launch_checked_steps<T>(Step::kName, step_of, params, grads, states...);
    });
  }
  static void run_any(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                      const DeviceStep& on_device, const Step& step) {
    if (params.empty()) return;
    pick<CapturableSteps>(RealFloatTypes(), params[0].scalar_type(), Step::kName)(params, grads, states0, states1,
                                                                                  states2, on_device, step);
  }
};

}  // namespace

void register_capturable_optim() {
  functors::for_each_step_rule([]<class Rule>(Rule) {
    kernels::capturable_step<typename Rule::Step>.set(kCUDA, CapturableSteps<Rule>::run_any);
  });
}

}  // namespace rush::cuda
