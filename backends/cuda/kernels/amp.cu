// What a gradient scaler computes on the device: one launch for many gradients, and one thread for the scale.
#include "core/ops/amp.h"

#include "backends/cuda/kernels/many_tensors.h"
#include "backends/cuda/kernels/register_pointwise.h"
#include "backends/functors/amp.h"

namespace rush::cuda {

namespace {

// The same for all gradients of a launch; on the device, where the host need not know them.
struct UnscaleTask {
  const float* inv_scale;
  float* found_inf;
};

// A thread remembers whether it met a number that was not finite, and says so once at its end. All that do write the
// same 1, so that their order does not matter.
template <class T>
__global__ void __launch_bounds__(kThreads) unscale_kernel(const __grid_constant__ ManyTensors<1, UnscaleTask> many) {
  using Math = opmath_t<T>;
  constexpr int kLanes = 16 / sizeof(T);
  const int tensor = many.tensor[blockIdx.x];
  const int64_t begin = many.chunk[blockIdx.x] * kChunk;
  const int n = static_cast<int>(min(kChunk, many.numel[tensor] - begin));
  T* grad = static_cast<T*>(many.data[tensor][0]) + begin;
  const functors::Unscale<Math> unscale{static_cast<Math>(*many.step[tensor].inv_scale)};
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
  if (!finite) *many.step[tensor].found_inf = 1;
}

struct UnscaleLoop {
  template <class T>
  static void run(TensorList grads, const UnscaleTask& task) {
    StepLauncher<T, 1, UnscaleTask, &unscale_kernel<T>> launcher("_amp_foreach_non_finite_check_and_unscale_");
    for (const Tensor& grad : grads) launcher.add({&grad}, task);
    launcher.launch();
  }
};

void unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  const UnscaleTask task{inv_scale.data_ptr<float>(), found_inf.data_ptr<float>()};
  pick<UnscaleLoop>(RealFloatTypes(), grads[0].scalar_type(), "_amp_foreach_non_finite_check_and_unscale_")(grads,
                                                                                                            task);
}

__global__ void update_scale_kernel(float* scale, int32_t* growth_tracker, const float* found_inf,
                                    functors::UpdateScale update) {
  update(*scale, *growth_tracker, *found_inf);
}

void update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                  const ScaleUpdate& update) {
  update_scale_kernel<<<1, 1, 0, current_stream()>>>(scale.data_ptr<float>(), growth_tracker.data_ptr<int32_t>(),
                                                     found_inf.data_ptr<float>(), functors::UpdateScale(update));
  RUSH_CUDA_LAUNCHED("_amp_update_scale_");
}

}  // namespace

void register_amp() {
  kernels::unscale.set(kCUDA, unscale);
  kernels::update_scale.set(kCUDA, update_scale);
}

}  // namespace rush::cuda
