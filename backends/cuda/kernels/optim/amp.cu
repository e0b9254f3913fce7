// What mixed precision needs on the device: the gradient scaler's steps, one launch for many gradients and one thread
// for the scale; and casts of many tensors in one launch.
#include "core/ops/optim/amp.h"

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/amp.h"
#include "backends/functors/convert.h"
#include "core/ops/pointwise/cast_all.h"

namespace rush::cuda {

namespace {

// On the device, where the host need not know them.
struct UnscaleNumbers {
  const float* inv_scale;
  float* found_inf;
};

// A thread remembers whether it met a number that was not finite, and says so once at its end. All that do write the
// same 1, so that their order does not matter.
template <class T>
__global__ void __launch_bounds__(kThreads)
    unscale_kernel(const __grid_constant__ ManyTensors<1, Nothing, UnscaleNumbers> many) {
  using Math = opmath_t<T>;
  constexpr int kLanes = 16 / sizeof(T);
  const auto [tensor, begin, n] = many.own_chunk();
  T* grad = static_cast<T*>(many.data[tensor][0]) + begin;
  const functors::Unscale<Math> unscale{static_cast<Math>(*many.common.inv_scale)};
  const bool aligned = reinterpret_cast<uintptr_t>(grad) % 16 == 0;
  const int wide = aligned ? n / kLanes * kLanes : 0;
  bool finite = true;
  for (int i = threadIdx.x * kLanes; i < wide; i += kThreads * kLanes) {
    auto lanes = *reinterpret_cast<const Lanes<T, kLanes>*>(grad + i);
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      Math value = static_cast<Math>(lanes.lane[l]);
      finite &= unscale(value);
      lanes.lane[l] = static_cast<T>(value);
    }
    *reinterpret_cast<Lanes<T, kLanes>*>(grad + i) = lanes;
  }
  for (int i = wide + threadIdx.x; i < n; i += kThreads) {
    Math value = static_cast<Math>(grad[i]);
    finite &= unscale(value);
    grad[i] = static_cast<T>(value);
  }
  if (!finite) *many.common.found_inf = 1;
}

struct UnscaleLoop {
  template <class T>
  static void run(TensorList grads, const UnscaleNumbers& numbers) {
    StepLauncher<T, 1, Nothing, &unscale_kernel<T>, UnscaleNumbers> launcher(
        "_amp_foreach_non_finite_check_and_unscale_", numbers);
    for (const Tensor& grad : grads) launcher.add({&grad});
    launcher.launch();
  }
};

void unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  const UnscaleNumbers numbers{inv_scale.data_ptr<float>(), found_inf.data_ptr<float>()};
  pick<UnscaleLoop>(RealFloatTypes(), grads[0].scalar_type(), "_amp_foreach_non_finite_check_and_unscale_")(grads,
                                                                                                            numbers);
}

__global__ void update_scale_kernel(float* scale, int32_t* growth_tracker, const float* found_inf,
                                    functors::UpdateScale update) {
  update(*scale, *growth_tracker, *found_inf);
}

void update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                  const ScaleUpdate& update) {
  launch_kernel("_amp_update_scale_", update_scale_kernel, {1, 1}, scale.data_ptr<float>(),
                growth_tracker.data_ptr<int32_t>(), found_inf.data_ptr<float>(), functors::UpdateScale(update));
}

template <class To, class From>
__global__ void __launch_bounds__(kThreads) cast_kernel(const __grid_constant__ ManyTensors<2, Nothing> many) {
  constexpr int kLanes = kLanesOf<To, From>;
  const auto [tensor, begin, n] = many.own_chunk();
  To* to = static_cast<To*>(many.data[tensor][0]) + begin;
  const From* from = static_cast<const From*>(many.data[tensor][1]) + begin;
  const bool aligned = reinterpret_cast<uintptr_t>(to) % sizeof(Lanes<To, kLanes>) == 0 &&
                       reinterpret_cast<uintptr_t>(from) % sizeof(Lanes<From, kLanes>) == 0;
  const int wide = aligned ? n / kLanes * kLanes : 0;
  for (int i = threadIdx.x * kLanes; i < wide; i += kThreads * kLanes) {
    const auto in = *reinterpret_cast<const Lanes<From, kLanes>*>(from + i);
    Lanes<To, kLanes> out;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) out.lane[l] = functors::converted<To>(in.lane[l]);
    *reinterpret_cast<Lanes<To, kLanes>*>(to + i) = out;
  }
  for (int i = wide + threadIdx.x; i < n; i += kThreads) to[i] = functors::converted<To>(from[i]);
}

template <class From>
struct CastTo {
  template <class To>
  static void run(TensorList to, TensorList from) {
    StepLauncher<To, 2, Nothing, &cast_kernel<To, From>> launcher("cast_all");
    for (size_t i = 0; i < to.size(); ++i) launcher.add({&to[i], &from[i]});
    launcher.launch();
  }
};
struct CastFrom {
  template <class From>
  static void run(TensorList to, TensorList from) {
    pick<CastTo<From>>(RealFloatTypes(), to[0].scalar_type(), "cast_all")(to, from);
  }
};

void cast_many(TensorList to, TensorList from) {
  if (to.empty()) return;
  pick<CastFrom>(RealFloatTypes(), from[0].scalar_type(), "cast_all")(to, from);
}

}  // namespace

void register_amp() {
  kernels::cast_many.set(kCUDA, cast_many);
  kernels::unscale.set(kCUDA, unscale);
  kernels::update_scale.set(kCUDA, update_scale);
}

}  // namespace rush::cuda
