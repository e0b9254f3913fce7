// One launch for the steps of an optimiser on many tensors.
#pragma once
#include <memory>

#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

// Note [Many tensors in one launch]
// A step over a model's parameters one by one would be a launch for each, mostly of a few thousand elements. Instead
// the addresses of many tensors travel in one launch's arguments, which may have 4 KiB, and with them which chunk of
// which tensor each block takes. No table is copied to the device, so nothing must outlive the launch.
inline constexpr int64_t kChunk = 32768;
inline constexpr int kMaxBlocks = 320;

// kLists: for an optimiser parameter, gradient, states. Step: the functor, which may differ between parameters.
template <int kLists, class Step>
struct ManyTensors {
  static constexpr int kTensors =
      std::min<int>(255, (3900 - kMaxBlocks * 5) / static_cast<int>(8 * kLists + 8 + sizeof(Step)));
  void* data[kTensors][kLists];
  int64_t numel[kTensors];
  Step step[kTensors];
  int32_t chunk[kMaxBlocks];
  uint8_t tensor[kMaxBlocks];
};

// A functor that an earlier kernel makes on the device. While *found_inf is not 0, there is none and nothing is done.
template <class Functor>
struct OnDevice {
  const Functor* functor;
  const float* found_inf;  // may be null
};

template <class Step>
__device__ bool is_skipped(const Step&) {
  return false;
}
template <class Functor>
__device__ bool is_skipped(const OnDevice<Functor>& step) {
  return step.found_inf && *step.found_inf != 0;
}
template <class Step>
__device__ const Step& functor_of(const Step& step) {
  return step;
}
template <class Functor>
__device__ const Functor& functor_of(const OnDevice<Functor>& step) {
  return *step.functor;
}

template <class T, class Math, class Step, size_t... I>
__device__ void take_step(const Step& step, T* const* at, int64_t i, std::index_sequence<I...>) {
  Math param = static_cast<Math>(at[0][i]);
  const Math grad = static_cast<Math>(at[1][i]);
  Math state[sizeof...(I) + 1] = {static_cast<Math>(at[I + 2][i])...};
  step(param, grad, state[I]...);
  at[0][i] = static_cast<T>(param);
  ((at[I + 2][i] = static_cast<T>(state[I])), ...);
}

template <class T, class Math, class Step, int kLanes, size_t... I>
__device__ void take_wide_step(const Step& step, T* const* at, int64_t i, std::index_sequence<I...>) {
  using Vector = Lanes<T, kLanes>;
  constexpr int kStates = sizeof...(I);
  Vector param = *reinterpret_cast<const Vector*>(at[0] + i);
  const Vector grad = *reinterpret_cast<const Vector*>(at[1] + i);
  Vector states[kStates + 1];
  ((states[I] = *reinterpret_cast<const Vector*>(at[I + 2] + i)), ...);
#pragma unroll
  for (int l = 0; l < kLanes; ++l) {
    Math p = static_cast<Math>(param.lane[l]);
    Math state[kStates + 1] = {static_cast<Math>(states[I].lane[l])...};
    step(p, static_cast<Math>(grad.lane[l]), state[I]...);
    param.lane[l] = static_cast<T>(p);
    ((states[I].lane[l] = static_cast<T>(state[I])), ...);
  }
  *reinterpret_cast<Vector*>(at[0] + i) = param;
  ((*reinterpret_cast<Vector*>(at[I + 2] + i) = states[I]), ...);
}

template <class T, int kLists, class Step>
__global__ void __launch_bounds__(kThreads) step_kernel(const __grid_constant__ ManyTensors<kLists, Step> many) {
  using Math = opmath_t<T>;
  constexpr int kLanes = 16 / sizeof(T);
  constexpr auto states = std::make_index_sequence<kLists - 2>();
  const int tensor = many.tensor[blockIdx.x];
  const int64_t begin = many.chunk[blockIdx.x] * kChunk;
  const int n = static_cast<int>(min(kChunk, many.numel[tensor] - begin));
  if (is_skipped(many.step[tensor])) return;
  const auto step = functor_of(many.step[tensor]);
  T* at[kLists];
  bool aligned = true;
#pragma unroll
  for (int list = 0; list < kLists; ++list) {
    at[list] = static_cast<T*>(many.data[tensor][list]) + begin;
    aligned = aligned && reinterpret_cast<uintptr_t>(at[list]) % 16 == 0;
  }
  const int wide = aligned ? n / kLanes * kLanes : 0;
  for (int i = threadIdx.x * kLanes; i < wide; i += kThreads * kLanes) {
    take_wide_step<T, Math, decltype(step), kLanes>(step, at, i, states);
  }
  for (int i = wide + threadIdx.x; i < n; i += kThreads) take_step<T, Math>(step, at, i, states);
}

// Collects chunks of tensors and launches `kernel`, by default a step of an optimiser, whenever the arguments are full.
template <class T, int kLists, class Step, auto kernel = &step_kernel<T, kLists, Step>>
class StepLauncher {
 public:
  explicit StepLauncher(const char* op) : op_(op) {}
  void add(const Tensor* const (&lists)[kLists], const Step& step) {
    const int64_t numel = lists[0]->numel();
    if (numel == 0) return;
    if (tensors_ == Many::kTensors) launch();
    int slot = place(lists, numel, step);
    for (int64_t chunk = 0; chunk * kChunk < numel; ++chunk) {
      if (blocks_ == kMaxBlocks) {
        launch();
        slot = place(lists, numel, step);
      }
      many_.tensor[blocks_] = static_cast<uint8_t>(slot);
      many_.chunk[blocks_++] = static_cast<int32_t>(chunk);
    }
  }
  void launch() {
    if (blocks_ > 0) {
      kernel<<<static_cast<unsigned>(blocks_), kThreads, 0, current_stream()>>>(many_);
      RUSH_CUDA_LAUNCHED(op_);
    }
    tensors_ = blocks_ = 0;
  }

 private:
  using Many = ManyTensors<kLists, Step>;
  union Storage {  // the functors in it have no default constructor
    Many many;
    Storage() {}
  };
  int place(const Tensor* const (&lists)[kLists], int64_t numel, const Step& step) {
    for (int list = 0; list < kLists; ++list) many_.data[tensors_][list] = lists[list]->data_ptr();
    many_.numel[tensors_] = numel;
    std::construct_at(&many_.step[tensors_], step);
    return tensors_++;
  }

  const char* op_;
  int tensors_ = 0, blocks_ = 0;
  Storage storage_;
  Many& many_ = storage_.many;
};

// Takes step_of(i) on tensor number i of all lists.
template <class T, class StepOf, class... States>
void launch_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads, const States&... states) {
  StepLauncher<T, 2 + sizeof...(States), decltype(step_of(0))> launcher(op);
  for (size_t i = 0; i < params.size(); ++i) launcher.add({&params[i], &grads[i], &states[i]...}, step_of(i));
  launcher.launch();
}

}  // namespace rush::cuda
