// The steps of SGD, Adam and Adadelta with numbers that lie on the device: Note [Capturable optimisers].
#include "backends/cuda/kernels/many_tensors.h"
#include "backends/cuda/kernels/optional_data.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/register.h"
#include "backends/functors/optim.h"
#include "core/ops/optim.h"

namespace rush::cuda {

namespace {

// Make the functor of a parameter's step number t.
template <class Math>
struct MakeSgd {
  using Functor = functors::Sgd<Math>;
  SgdStep step;
  __device__ Functor operator()(const double* numbers, int64_t t) const {
    SgdStep now = step;
    now.take(numbers);
    now.first = t == 1;
    return Functor(now);
  }
};
template <class Math>
struct MakeAdam {
  using Functor = functors::Adam<Math>;
  AdamStep step;
  __device__ Functor operator()(const double* numbers, int64_t t) const {
    AdamStep now = step;
    now.take(numbers);
    return Functor(now, t);
  }
};

template <class Math>
struct MakeAdadelta {
  using Functor = functors::Adadelta<Math>;
  AdadeltaStep step;
  __device__ Functor operator()(const double* numbers, int64_t) const {
    AdadeltaStep now = step;
    now.take(numbers);
    return Functor(now);
  }
};

struct Counters {
  static constexpr int kMost = 256;  // 2 KiB of a launch's arguments
  int64_t* at[kMost];
};

// A thread a parameter: counts its step and makes its functor.
template <class Make>
__global__ void make_functors(const __grid_constant__ Counters counters, int n, const double* numbers,
                              const float* found_inf, Make make, typename Make::Functor* made) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n || (found_inf && *found_inf != 0)) return;
  made[i] = make(numbers, ++*counters.at[i]);
}

// A functor for each of `steps`, in memory of the current stream.
template <class Make>
Scratch functors_for(const char* op, TensorList steps, const Tensor& numbers, const float* found_inf,
                     const Make& make) {
  using Functor = typename Make::Functor;
  Scratch made(steps.size() * sizeof(Functor));
  for (size_t begin = 0; begin < steps.size(); begin += Counters::kMost) {
    const auto n = static_cast<int>(std::min(steps.size() - begin, static_cast<size_t>(Counters::kMost)));
    Counters counters{};
    for (int i = 0; i < n; ++i) counters.at[i] = steps[begin + static_cast<size_t>(i)].data_ptr<int64_t>();
    const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
    make_functors<<<blocks, kThreads, 0, current_stream()>>>(counters, n, numbers.data_ptr<double>(), found_inf, make,
                                                             made.as<Functor>() + begin);
    RUSH_CUDA_LAUNCHED(op);
  }
  return made;
}

// Takes the steps of `make` on tensors number i of all lists.
template <class T, class Make, class... States>
void take_steps(const char* op, TensorList steps, const Tensor& numbers, const Tensor& found_inf, const Make& make,
                TensorList params, TensorList grads, const States&... states) {
  using Functor = typename Make::Functor;
  const float* found = data_or_null<float>(found_inf);
  const Scratch made = functors_for(op, steps, numbers, found, make);
  const auto step_of = [&](size_t i) { return OnDevice<Functor>{made.as<Functor>() + i, found}; };
  launch_steps<T>(op, step_of, params, grads, states...);
}

struct CapturableSgdLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList buffers, TensorList steps, const Tensor& numbers,
                  const Tensor& found_inf, const SgdStep& step) {
    const MakeSgd<opmath_t<T>> make{step};
    if (step.momentum == 0) return take_steps<T>("SGD", steps, numbers, found_inf, make, params, grads);
    take_steps<T>("SGD", steps, numbers, found_inf, make, params, grads, buffers);
  }
};

struct CapturableAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                  TensorList steps, const Tensor& numbers, const Tensor& found_inf, const AdamStep& step) {
    const MakeAdam<opmath_t<T>> make{step};
    if (!step.amsgrad) return take_steps<T>("Adam", steps, numbers, found_inf, make, params, grads, means, squares);
    take_steps<T>("Adam", steps, numbers, found_inf, make, params, grads, means, squares, max_squares);
  }
};

struct CapturableAdadeltaLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList deltas, TensorList steps,
                  const Tensor& numbers, const Tensor& found_inf, const AdadeltaStep& step) {
    const MakeAdadelta<opmath_t<T>> make{step};
    take_steps<T>("Adadelta", steps, numbers, found_inf, make, params, grads, squares, deltas);
  }
};

void capturable_sgd(TensorList params, TensorList grads, TensorList buffers, TensorList steps, const Tensor& numbers,
                    const Tensor& found_inf, const SgdStep& step) {
  if (params.empty()) return;
  pick<CapturableSgdLoop>(RealFloatTypes(), params[0].scalar_type(), "SGD")(params, grads, buffers, steps, numbers,
                                                                            found_inf, step);
}

void capturable_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                     TensorList steps, const Tensor& numbers, const Tensor& found_inf, const AdamStep& step) {
  if (params.empty()) return;
  pick<CapturableAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "Adam")(
      params, grads, means, squares, max_squares, steps, numbers, found_inf, step);
}

void capturable_adadelta(TensorList params, TensorList grads, TensorList squares, TensorList deltas, TensorList steps,
                         const Tensor& numbers, const Tensor& found_inf, const AdadeltaStep& step) {
  if (params.empty()) return;
  pick<CapturableAdadeltaLoop>(RealFloatTypes(), params[0].scalar_type(), "Adadelta")(params, grads, squares, deltas,
                                                                                      steps, numbers, found_inf, step);
}

}  // namespace

void register_capturable_optim() {
  kernels::capturable_sgd.set(kCUDA, capturable_sgd);
  kernels::capturable_adam.set(kCUDA, capturable_adam);
  kernels::capturable_adadelta.set(kCUDA, capturable_adadelta);
}

}  // namespace rush::cuda
