// Steps of optimisers with numbers that lie on the device: Note [Capturable optimisers].
#pragma once
#include <algorithm>
#include <type_traits>

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/optional_data.h"
#include "backends/cuda/kernels/pick.h"

namespace rush::cuda {

void register_capturable_adaptive_optim();

// Makes the functor of a parameter's step number t from the numbers of its group. `mu_product` is NAdam's product of
// momenta, which this step multiplies; null for all others.
template <class Made, class Step>
struct MakeFunctor {
  using Functor = Made;
  Step step;
  __device__ Functor operator()(const double* numbers, int64_t t, double* mu_product) const {
    Step now = step;
    now.take(numbers);
    if constexpr (std::is_constructible_v<Functor, const Step&, int64_t, double>) {
      *mu_product *= now.momentum_at(t);
      return Functor(now, t, *mu_product);
    } else if constexpr (std::is_constructible_v<Functor, const Step&, int64_t>) {
      return Functor(now, t);
    } else {
      if constexpr (requires { now.first; }) now.first = t == 1;
      return Functor(now);
    }
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

template <template <class> class Functor, class Step, class... States>
struct CapturableLoop {
  template <class T>
  static void run(const char* op, const DeviceStep& on_device, const Step& step, TensorList params, TensorList grads,
                  const States&... states) {
    using Made = Functor<opmath_t<T>>;
    native::check_step_lists(op, params, {grads, states...});
    native::check_step_numbers(op, params, on_device.steps.size());
    if constexpr (std::is_same_v<Step, NAdamStep>) {
      native::check_step_numbers(op, params, on_device.mu_products.size());
    }
    const Made* made = make_functors_of(op, on_device, MakeFunctor<Made, Step>{step});
    const float* found = data_or_null<float>(on_device.found_inf);
    const auto step_of = [&](size_t i) { return OnDevice<Made>{made + i, found}; };
    launch_checked_steps<T>(op, step_of, params, grads, states...);
  }
};

// Takes the steps of Functor on tensors number i of all lists.
template <template <class> class Functor, class Step, class... States>
void take_steps(const char* op, const DeviceStep& on_device, const Step& step, TensorList params, TensorList grads,
                const States&... states) {
  if (params.empty()) return;
  pick<CapturableLoop<Functor, Step, States...>>(RealFloatTypes(), params[0].scalar_type(), op)(
      op, on_device, step, params, grads, states...);
}

}  // namespace rush::cuda
