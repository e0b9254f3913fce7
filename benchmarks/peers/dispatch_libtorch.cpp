// libtorch's side of benchmarks/dispatch.cpp and cuda/dispatch.cpp: what a call costs apart from its arithmetic. Prints
// a line of JSON for each of the names that it is given, those of our benchmarks. compare.py compiles and runs it.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstring>

namespace {

using Clock = std::chrono::steady_clock;

// Seconds of a call of run(), the mean over half a second; `calls` at a time, which the device is then waited for.
template <class Run>
double seconds(int calls, bool on_gpu, const Run& run) {
  const auto repeat = [&] {
    for (int i = 0; i < calls; ++i) run();
    if (on_gpu) torch::cuda::synchronize();
  };
  repeat();
  const auto start = Clock::now();
  double taken = 0;
  int64_t rounds = 0;
  for (; taken < 0.5; ++rounds) {
    repeat();
    taken = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return taken / static_cast<double>(rounds * calls);
}

// A chain of multiplications forward and backward, for each of them.
double chain100(torch::Device device) {
  constexpr int kLength = 100;
  const auto p = torch::ones({8}, torch::requires_grad().device(device)), b = torch::ones({8}, device);
  return seconds(device.is_cuda() ? 1 : 10, device.is_cuda(),
                 [&] {
                   auto c = p;
                   for (int i = 0; i < kLength; ++i) c = c * b;
                   c.sum().backward();
                   p.mutable_grad() = torch::Tensor();
                 }) /
         kLength;
}

double on_cpu(const char* name) {
  torch::set_num_threads(1);
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  const auto a = torch::ones({8}), b = torch::ones({8}), p = torch::ones({8}, torch::requires_grad());
  if (is("add8_grad")) return seconds(1000, false, [&] { p + b; });
  if (is("chain100")) return chain100(torch::kCPU);
  const torch::NoGradGuard no_grad;
  if (is("add8_nograd")) return seconds(1000, false, [&] { a + b; });
  if (is("add8_inplace")) return seconds(1000, false, [&] { a.add_(b); });
  if (is("view")) return seconds(1000, false, [&] { a.view({2, 4}); });
  if (is("empty8")) return seconds(1000, false, [&] { torch::empty({8}); });
  const auto m = torch::ones({32, 32}), n = torch::ones({32, 32});
  if (is("mm32")) return seconds(1000, false, [&] { m.mm(n); });
  return -1;
}

double on_gpu(const char* name) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("chain100")) return chain100(torch::kCUDA);
  const torch::NoGradGuard no_grad;
  const auto a = torch::ones({1}, torch::kCUDA), b = torch::ones({1}, torch::kCUDA);
  if (is("add1")) return seconds(1000, true, [&] { a + b; });
  if (is("empty_tensor")) return seconds(1000, true, [] { torch::empty({1 << 18}, torch::kCUDA); });
  if (is("allocate_free")) {
    c10::Allocator* allocator = c10::GetAllocator(torch::kCUDA);
    return seconds(1000, true, [&] { allocator->raw_deallocate(allocator->raw_allocate(4096)); });
  }
  return -1;
}

double measure(const char* name) {
  constexpr char kCpu[] = "dispatch/", kGpu[] = "cuda_dispatch/";
  if (std::strncmp(name, kCpu, sizeof(kCpu) - 1) == 0) return on_cpu(name + sizeof(kCpu) - 1);
  if (std::strncmp(name, kGpu, sizeof(kGpu) - 1) == 0) return on_gpu(name + sizeof(kGpu) - 1);
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const double result = measure(argv[i]);
    if (result < 0) {
      std::printf("{\"error\": \"libtorch's side has no workload of this name\"}\n");
    } else {
      std::printf("{\"seconds\": %.9e}\n", result);
    }
  }
}
