// The kernels of the emulated accelerator: each is the CPU's, put into the current stream with its arguments.
#include <tuple>

#include "autograd/grad_mode.h"
#include "backends/functors/optim.h"
#include "core/ops/factory/factories.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/conv.h"
#include "core/ops/nn/fused.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/optim/optim.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "tests/labs/device/accelerator.h"
#include "tests/labs/device/held_arguments.h"

namespace rush::labs {

namespace {

void give(std::string op, ArgumentAccesses& accesses, std::function<void()> run) {
  streams().give(streams().current(),
                 std::make_shared<const Work>(Work{std::move(op), accesses.take(), std::move(run)}));
}

template <class Arg>
HeldArgument<Arg> held(Arg argument, ArgumentAccesses& accesses) {
  accesses.next_argument();
  return HeldArgument<Arg>(static_cast<Arg>(argument), accesses);
}

// The CPU's function of `kernel`, put into the current stream.
template <auto& kernel, unsigned written, class... Args>
void deferred(Args... args) {
  ArgumentAccesses accesses(written);
  const auto kept = std::shared_ptr<std::tuple<HeldArgument<Args>...>>(
      new std::tuple<HeldArgument<Args>...>{held<Args>(static_cast<Args>(args), accesses)...});
  give(kernel.name(), accesses, [kept] {
    std::apply([](auto&... each) { kernel(kCPU, each.get()...); }, *kept);
    std::apply([](auto&... each) { (each.finish(), ...); }, *kept);
  });
}

template <auto& kernel, unsigned written, class... Args>
void set_kernel(DeviceType type, const Kernel<void(Args...)>&) {
  kernel.set(type, deferred<kernel, written, Args...>);
}
// Bit i of `written`: argument i is written. What an iterator writes it knows itself.
template <auto& kernel, unsigned written = 0>
void set(DeviceType type) {
  set_kernel<kernel, written>(type, kernel);
}

// The host waits unless it is told not to and its memory is pinned.
void copy_between(const Tensor& self, const Tensor& src, bool non_blocking) {
  const Tensor& on_host = self.is_cpu() ? self : src;
  const bool is_async = on_host.is_pinned() && non_blocking;
  if (!is_async) check_not_capturing("a copy that the host waits for");
  if (on_host.is_pinned()) pinned_memory().record_stream(on_host.storage()->data(), streams().current());
  ArgumentAccesses accesses(0);
  // hold() copies a pageable source, as the driver does; a pageable target is written before this returns.
  const Tensor from = accesses.hold(src, /*writes=*/false);
  const Tensor to = self.is_cpu() && !self.is_pinned() ? self : accesses.hold(self, /*writes=*/true);
  give("copy_", accesses, [to, from] {
    const NoGradGuard no_grad;
    to.copy_(from);
  });
  if (!is_async && !(src.is_cpu() && !src.is_pinned())) streams().synchronize(streams().current());
}

// See Note [Capturable optimisers]: the numbers are read when the step runs.
template <class Step>
void capturable_step(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                     const DeviceStep& on_device, const Step& step) {
  RUSH_CHECK_NOT_IMPLEMENTED(on_device.mu_products.empty(), Step::kName, ": no products of momenta here");
  ArgumentAccesses accesses(0b111101);
  using Held = HeldArgument<TensorList>;
  // In braces, which are evaluated in order: the accesses count the arguments.
  const auto lists = std::shared_ptr<std::tuple<Held, Held, Held, Held, Held, Held>>(
      new std::tuple<Held, Held, Held, Held, Held, Held>{
          held<TensorList>(params, accesses), held<TensorList>(grads, accesses), held<TensorList>(states0, accesses),
          held<TensorList>(states1, accesses), held<TensorList>(states2, accesses),
          held<TensorList>(on_device.steps, accesses)});
  const Tensor numbers = accesses.hold(on_device.numbers, false), found_inf = accesses.hold(on_device.found_inf, false);
  give(Step::kName, accesses, [lists, numbers, found_inf, step] {
    if (found_inf.defined() && *found_inf.data_ptr<float>() != 0) return;
    auto& [own, own_grads, own0, own1, own2, counters] = *lists;
    std::vector<int64_t> steps;
    for (const Tensor& counter : counters.get()) steps.push_back(++*counter.data_ptr<int64_t>());
    Step now = step;
    now.take(numbers.data_ptr<double>());
    if constexpr (requires { now.first; }) now.first = steps[0] == 1;
    kernels::fused_step<Step>(kCPU, own.get(), own_grads.get(), own0.get(), own1.get(), own2.get(), steps, {}, now);
  });
}

template <class Step>
void set_step(DeviceType type) {
  set<kernels::fused_step<Step>, 0b11101>(type);
  kernels::capturable_step<Step>.set(type, capturable_step<Step>);
}

}  // namespace

void set_kernels(DeviceType type) {
  namespace k = kernels;
  k::copy_between.set(type, copy_between);
  set<k::copy>(type);
  set<k::fill>(type);
  set<k::foreach_copy, 1>(type);
  // element by element
  set<k::add>(type);
  set<k::mul>(type);
  set<k::div>(type);
  set<k::neg>(type);
  set<k::tanh>(type);
  set<k::tanh_backward>(type);
  set<k::rsqrt>(type);
  set<k::relu>(type);
  set<k::threshold_backward>(type);
  // of rows and of matrices
  set<k::sum, 1>(type);
  set<k::mean, 1>(type);
  set<k::gemm, 1>(type);
  set<k::gemm_bias, 1>(type);
  set<k::linear_parameter_gradients, 0b11>(type);
  // of nets
  set<k::cross_entropy, 0b111>(type);
  set<k::cross_entropy_backward, 1>(type);
  set<k::convolution, 1>(type);
  set<k::convolution_transpose, 1>(type);
  set<k::convolution_weight, 1>(type);
  set<k::max_pool, 0b11>(type);
  set<k::max_pool_backward, 1>(type);
  set<k::batch_norm, 0b1111>(type);
  set<k::batch_norm_backward, 0b111>(type);
  set<k::channel_affine, 1>(type);
  set_step<SgdStep>(type);
  set_step<AdamStep>(type);
}

}  // namespace rush::labs
