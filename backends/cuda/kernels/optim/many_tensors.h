// One launch for the steps of an optimiser on many tensors.
#pragma once
#include <limits>
#include <memory>
#include <type_traits>

#include "backends/cuda/kernels/launch.h"
#include "core/ops/optim/optim.h"

namespace rush::cuda {

// Note [Many tensors in one launch]
// A launch for each parameter of a model would process only a few thousand elements. Instead, the arguments of a
// launch, which may have 4 KiB, hold the addresses of many tensors. Each tensor is split into chunks, one for each
// thread block; a block finds its tensor by bisection. No table is copied to the device, so nothing must outlive the
// launch. Chunks are short, so that a small model has enough of them for all multiprocessors: a thread waits for its
// accesses one after the other, some 1 us each.
inline constexpr int64_t kChunk = 4096;

struct Nothing {};

// The chunk of a thread block: elements [begin, begin + size) of tensor number `tensor` of each list.
struct OwnChunk {
  int tensor;
  int64_t begin;
  int size;
};

// kLists: for an optimiser parameter, gradient, states. Step: the functor, which may differ between parameters.
// Common: what is the same for all tensors.
template <int kLists, class Step, class Common = Nothing>
struct ManyTensors {
  static constexpr int kTensors = (4000 - sizeof(Common)) / (8 * kLists + 8 + 4 + sizeof(Step));
  void* data[kTensors][kLists];
  int64_t numel[kTensors];
  Step step[kTensors];
  int32_t first_block[kTensors];
  int32_t tensors;
  int64_t earlier_blocks;  // of other launches for the same lists
  Common common;

  __device__ OwnChunk own_chunk() const {
    const int block = static_cast<int>(blockIdx.x);
    int tensor = 0;
    for (int end = tensors; end - tensor > 1;) {
      const int middle = (tensor + end) / 2;
      (first_block[middle] <= block ? tensor : end) = middle;
    }
    const int64_t begin = (block - first_block[tensor]) * kChunk;
    return {tensor, begin, static_cast<int>(min(kChunk, numel[tensor] - begin))};
  }
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
  const auto [tensor, begin, n] = many.own_chunk();
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

// Collects tensors and launches `kernel`, by default a step of an optimiser, whenever the arguments are full.
template <class T, int kLists, class Step, auto kernel = &step_kernel<T, kLists, Step>, class Common = Nothing>
class StepLauncher {
 public:
  explicit StepLauncher(const char* op, const Common& common = {}) : op_(op) {
    many_.tensors = 0;
    many_.earlier_blocks = 0;
    std::construct_at(&many_.common, common);
  }
  void add(const Tensor* const (&lists)[kLists], const Step& step = {}) {
    void* data[kLists];
    for (int list = 0; list < kLists; ++list) data[list] = lists[list]->data_ptr();
    add(data, lists[0]->numel(), step);
  }
  // So many elements from each of these addresses on.
  void add(void* const (&data)[kLists], int64_t numel, const Step& step = {}) {
    if (numel == 0) return;
    const int64_t chunks = (numel + kChunk - 1) / kChunk;
    if (many_.tensors == Many::kTensors || blocks_ + chunks > kMaxBlocks) launch();
    const int slot = many_.tensors++;
    for (int list = 0; list < kLists; ++list) many_.data[slot][list] = data[list];
    many_.numel[slot] = numel;
    std::construct_at(&many_.step[slot], step);
    many_.first_block[slot] = static_cast<int32_t>(blocks_);
    blocks_ += chunks;
  }
  void launch() {
    if (blocks_ == 0) return;
    launch_kernel(op_, kernel, {static_cast<unsigned>(blocks_), kThreads}, many_);
    many_.earlier_blocks += blocks_;
    many_.tensors = 0;
    blocks_ = 0;
  }

 private:
  static constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  using Many = ManyTensors<kLists, Step, Common>;
  static_assert(sizeof(Many) <= 4096 && std::is_trivially_destructible_v<Many>);
  union Storage {  // the functors in it have no default constructor
    Many many;
    Storage() {}
  };

  const char* op_;
  int64_t blocks_ = 0;
  Storage storage_;
  Many& many_ = storage_.many;
};

// Applies step_of(i) to tensor number i of all lists, which native::check_step_lists has checked.
template <class T, class StepOf, class... States>
void launch_checked_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads,
                          const States&... states) {
  StepLauncher<T, 2 + sizeof...(States), decltype(step_of(0))> launcher(op);
  for (size_t i = 0; i < params.size(); ++i) launcher.add({&params[i], &grads[i], &states[i]...}, step_of(i));
  launcher.launch();
}

// The same, after that check.
template <class T, class StepOf, class... States>
void launch_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads, const States&... states) {
  native::check_step_lists(op, params, {grads, states...});
  launch_checked_steps<T>(op, step_of, params, grads, states...);
}

}  // namespace rush::cuda
