// What a residual network does between its convolutions, on 128 images in bfloat16 and channels_last: batch norm with
// and without a residual and relu behind it, relu and the sum by themselves, and the pool. bytes_per_second counts each
// tensor that has to be read or written, once for each pass that cannot be avoided.
//   cuda_resnet/OPERATION/CHANNELSxSIZE
#include <string>

#include "benchmarks/cuda/time_on_device.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "rushlight.h"

namespace {

using namespace rush;

struct Activation {
  int64_t channels, size;
};
constexpr Activation kActivations[] = {{64, 112}, {64, 56}, {256, 56}, {512, 28}, {1024, 14}, {2048, 7}};

Tensor activation(const Activation& a) {
  return randn({128, a.channels, a.size, a.size}, TensorOptions(kBFloat16).device(kCUDA))
      .contiguous(MemoryFormat::ChannelsLast);
}

// The tensors of a layer and what its forward pass left for the backward pass.
struct Layer {
  Tensor x, residual, grad, weight, bias, mean, var;
  NormResult normalised, with_relu, with_residual;

  explicit Layer(const Activation& a)
      : x(activation(a)),
        residual(activation(a)),
        grad(activation(a)),
        weight(ones({a.channels}, kCUDA)),
        bias(zeros({a.channels}, kCUDA)),
        mean(zeros({a.channels}, kCUDA)),
        var(ones({a.channels}, kCUDA)),
        normalised(norm()),
        with_relu(norm_relu({})),
        with_residual(norm_relu(residual)) {}

  NormResult norm() const { return native_batch_norm(x, weight, bias, mean, var, true, 0.1, 1e-5); }
  NormResult norm_relu(const OptionalTensor& other) const {
    return ops::native_batch_norm_relu(x, other, weight, bias, mean, var, 0.1, 1e-5);
  }
  void norm_backward() const {
    const auto& [y, save_mean, save_invstd] = normalised;
    ops::native_batch_norm_backward(grad, x, weight, mean, var, save_mean, save_invstd, true, 1e-5, {true, true, true});
  }
  void norm_relu_backward(const NormResult& forward, bool has_residual) const {
    const auto& [y, save_mean, save_invstd] = forward;
    ops::native_batch_norm_relu_backward(grad, y, x, has_residual, weight, bias, save_mean, save_invstd,
                                         {true, true, true, true}, std::nullopt);
  }
};

struct Operation {
  const char* name;
  int passes;  // over tensors of the activation's size
  void (*run)(const Layer&);
};
const Operation kOperations[] = {
    {"batch_norm", 3, [](const Layer& l) { l.norm(); }},
    {"batch_norm_backward", 5, [](const Layer& l) { l.norm_backward(); }},
    {"batch_norm_relu", 3, [](const Layer& l) { l.norm_relu({}); }},
    {"batch_norm_relu_backward", 5, [](const Layer& l) { l.norm_relu_backward(l.with_relu, false); }},
    {"batch_norm_add_relu", 4, [](const Layer& l) { l.norm_relu(l.residual); }},
    {"batch_norm_add_relu_backward", 7, [](const Layer& l) { l.norm_relu_backward(l.with_residual, true); }},
    {"relu", 2, [](const Layer& l) { relu(l.x); }},
    {"relu_backward", 3, [](const Layer& l) { ops::threshold_backward(l.grad, l.x, 0); }},
    {"add", 3, [](const Layer& l) { l.x + l.residual; }},
};

constexpr int kCalls = 20;

void set_bytes(benchmark::State& state, double bytes) {
  state.counters["bytes_per_second"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void measure(benchmark::State& state, const Operation& operation, const Activation& a) {
  if (lacks_gpu(state)) return;
  const NoGradGuard no_grad;
  const Layer layer(a);
  time_on_device(
      state, [&] { operation.run(layer); }, kCalls);
  set_bytes(state, static_cast<double>(operation.passes) * static_cast<double>(layer.x.nbytes()));
}

void measure_pool(benchmark::State& state, bool backward) {
  if (lacks_gpu(state)) return;
  const NoGradGuard no_grad;
  const Tensor x = activation({64, 112});
  const auto forward = [&] { return ops::max_pool2d_with_indices(x, 3, 2, 1, 1, false); };
  const auto [y, indices] = forward();
  if (backward) {
    time_on_device(
        state,
        [&, &y = y, &indices = indices] { ops::max_pool2d_with_indices_backward(y, x, 3, 2, 1, 1, false, indices); },
        kCalls);
  } else {
    time_on_device(state, forward, kCalls);
  }
  set_bytes(state, static_cast<double>(x.nbytes() + y.nbytes() + indices.nbytes()));
}

const bool registered = [] {
  for (const Operation& operation : kOperations) {
    for (const Activation& a : kActivations) {
      const std::string name = str("cuda_resnet/", operation.name, '/', a.channels, 'x', a.size);
      benchmark::RegisterBenchmark(name.c_str(), measure, operation, a)->UseManualTime()->Unit(benchmark::kMicrosecond);
    }
  }
  for (const bool backward : {false, true}) {
    const char* name = backward ? "cuda_resnet/max_pool_backward/64x112" : "cuda_resnet/max_pool/64x112";
    benchmark::RegisterBenchmark(name, measure_pool, backward)->UseManualTime()->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
