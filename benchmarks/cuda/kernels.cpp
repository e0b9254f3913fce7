// The CUDA kernels: bytes per second of those that memory limits, over 512 MiB of float32 or 256 MiB of bfloat16, and
// arithmetic of matrix products. Each time is between two events around one call.
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
  return true;
}();

}  // namespace
