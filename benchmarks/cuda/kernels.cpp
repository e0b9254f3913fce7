// The CUDA kernels: bytes per second of those that memory limits, over 512 MiB of float32 or 256 MiB of bfloat16, and
// arithmetic of matrix products and of attention. Each time is between two events around one call.
#include <optional>
#include <string>

#include "benchmarks/cuda/time_on_device.h"
#include "rushlight.h"

namespace {

using namespace rush;

constexpr int64_t kRows = 16384, kColumns = 8192;

struct Operands {
  Tensor x, y, out, row;
};
struct Kernel {
  const char* name;
  double tensors_moved;  // read and written, of the operand's size
  void (*run)(const Operands& in);
};
const Kernel kKernels[] = {
    {"copy", 2, [](const Operands& in) { in.out.copy_(in.x); }},
    {"add", 3, [](const Operands& in) { in.x + in.y; }},
    {"add_row", 2, [](const Operands& in) { in.x + in.row; }},
    {"gelu", 2, [](const Operands& in) { gelu(in.x); }},
    {"softmax", 2, [](const Operands& in) { softmax(in.x, -1); }},
    {"layer_norm", 2, [](const Operands& in) { layer_norm(in.x, {kColumns}, in.row, in.row); }},
    {"sum_all", 1, [](const Operands& in) { in.x.sum(); }},
    {"sum_dim0", 1, [](const Operands& in) { in.x.sum(0); }},
    {"sum_dim1", 1, [](const Operands& in) { in.x.sum(1); }},
    {"transpose_copy", 2, [](const Operands& in) { in.x.t().contiguous(); }},
    {"dropout", 2, [](const Operands& in) { dropout(in.x, 0.1, true); }},
    {"randn", 1, [](const Operands& in) { in.out.normal_(); }},
};

struct NamedType {
  const char* name;
  ScalarType dtype;
  bool tf32;
};

void register_bandwidth(const Kernel& kernel, const NamedType& type) {
  const auto measure = [&kernel, &type](benchmark::State& state) {
    if (lacks_gpu(state)) return;
    const NoGradGuard no_grad;
    const TensorOptions options = TensorOptions(type.dtype).device(kCUDA);
    const Tensor x = randn({kRows, kColumns}, options);
    const Operands in{x, randn({kRows, kColumns}, options), empty_like(x), randn({kColumns}, options)};
    time_on_device(state, [&] { kernel.run(in); });
    state.SetBytesProcessed(static_cast<int64_t>(static_cast<double>(state.iterations()) * kernel.tensors_moved *
                                                 static_cast<double>(x.nbytes())));
  };
  benchmark::RegisterBenchmark((std::string("cuda/") + kernel.name + "/" + type.name).c_str(), measure)
      ->UseManualTime()
      ->Iterations(30)
      ->Unit(benchmark::kMillisecond);
}

void register_product(int64_t n, const NamedType& type) {
  const auto measure = [n, &type](benchmark::State& state) {
    if (lacks_gpu(state)) return;
    const NoGradGuard no_grad;
    const TensorOptions options = TensorOptions(type.dtype).device(kCUDA);
    const Tensor a = randn({n, n}, options), b = randn({n, n}, options);
    globalContext().setAllowTF32CuBLAS(type.tf32);
    time_on_device(state, [&] { mm(a, b); });
    globalContext().setAllowTF32CuBLAS(false);
    state.counters["flops"] =
        benchmark::Counter(2.0 * static_cast<double>(n * n * n), benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark((std::string("cuda/matmul") + std::to_string(n) + "/" + type.name).c_str(), measure)
      ->UseManualTime()
      ->Iterations(20)
      ->Unit(benchmark::kMillisecond);
}

// Causal attention, by one back end or by the one that is chosen: the forward pass alone, and with the gradient.
// Counted as flash attention is: half of 4 products of pairs forward, 2.5 times as much backward.
struct Attention {
  const char* name;
  std::optional<SDPBackend> backend;
  ScalarType dtype;
};
const Attention kAttentions[] = {
    {"cudnn/bfloat16", SDPBackend::cudnn_attention, kBFloat16},
    {"efficient/bfloat16", SDPBackend::efficient_attention, kBFloat16},
    {"efficient/float32", SDPBackend::efficient_attention, kFloat32},
    {"math/bfloat16", SDPBackend::math, kBFloat16},
    {"math/float32", SDPBackend::math, kFloat32},
    {"default/bfloat16", std::nullopt, kBFloat16},
};
struct AttentionSizes {
  int64_t batch, heads, length, width;
};
constexpr AttentionSizes kGpt2Attention{16, 12, 1024, 64}, kLongAttention{4, 16, 4096, 128};

void register_attention(const Attention& attention, AttentionSizes sizes, bool backward, double dropout_p) {
  const auto measure = [&attention, sizes, backward, dropout_p](benchmark::State& state) {
    if (lacks_gpu(state)) return;
    std::optional<SDPBackendGuard> only;
    if (attention.backend) only.emplace({*attention.backend});
    const auto [batch, heads, length, width] = sizes;
    // As a projection of queries, keys and values leaves them: (B, T, 3, H, E).
    const Tensor packed =
        randn({batch, length, 3, heads, width}, TensorOptions(attention.dtype).device(kCUDA)).requires_grad_(backward);
    const auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2).detach().requires_grad_(backward); };
    const Tensor q = part(0), k = part(1), v = part(2);
    if (attention.backend && fused_sdp_choice(q, k, v, {}, dropout_p, true) != attention.backend) {
      return state.SkipWithError(sdp_refusals(q, k, v, {}, dropout_p, true).c_str());
    }
    const Tensor grad = randn({batch, length, heads, width}, packed.options().requires_grad(false)).transpose(1, 2);
    time_on_device(state, [&] {
      const Tensor out = scaled_dot_product_attention(q, k, v, {}, dropout_p, true);
      if (backward) autograd::grad({out}, {q, k, v}, {grad});
    });
    const double forward = 2.0 * static_cast<double>(batch * heads * length * length * width);
    state.counters["flops"] =
        benchmark::Counter(forward * (backward ? 3.5 : 1), benchmark::Counter::kIsIterationInvariantRate);
  };
  const std::string label = std::string("cuda/attention") + std::to_string(sizes.length) + "/" + attention.name +
                            (dropout_p > 0 ? "/dropout" : "") + (backward ? "/both" : "/forward");
  benchmark::RegisterBenchmark(label.c_str(), measure)->UseManualTime()->Iterations(20)->Unit(benchmark::kMillisecond);
}

// Registered by a loop, so that a row of the table is a benchmark.
const bool registered = [] {
  static const NamedType of_memory[] = {{"float32", kFloat32, false}, {"bfloat16", kBFloat16, false}};
  static const NamedType of_products[] = {{"bfloat16", kBFloat16, false},
                                          {"float16", kFloat16, false},
                                          {"tf32", kFloat32, true},
                                          {"float32", kFloat32, false}};
  for (const NamedType& type : of_memory) {
    for (const Kernel& kernel : kKernels) register_bandwidth(kernel, type);
  }
  for (const int64_t n : {4096, 8192}) {
    for (const NamedType& type : of_products) register_product(n, type);
  }
  const Attention &through_cudnn = kAttentions[0], &as_chosen = std::end(kAttentions)[-1];
  for (const bool backward : {false, true}) {
    for (const Attention& attention : kAttentions) register_attention(attention, kGpt2Attention, backward, 0);
    register_attention(through_cudnn, kGpt2Attention, backward, 0.1);
    register_attention(through_cudnn, kLongAttention, backward, 0);
    register_attention(as_chosen, kLongAttention, backward, 0);
  }
  return true;
}();

}  // namespace
