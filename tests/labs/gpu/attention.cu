// Lab 13's functions on a GPU: compares their outputs with those of the emulated grid, and measures logsumexp beside a
// copy of its input, and attention beside its two products alone, as cuBLAS makes them with S in memory. nvcc compiles
// it together with the file of the kernels, and links cuBLAS. usage: rush_lab_attention_gpu FILE, the emulated grid's
// outputs
#include "tests/labs/gpu/blas.h"
#include "tests/labs/gpu/comparison.h"
#include "tests/labs/kernels/attention_cases.h"

using namespace rush::labs;

namespace {

void measure_logsumexp() {
  constexpr int64_t kSide = 8192, kBytes = kSide * kSide * static_cast<int64_t>(sizeof(float));
  const DeviceMemory<float> in = allocate<float>(kSide * kSide), out = allocate<float>(kSide);
  const double roof = rate_of_copy(kBytes) / 1e9;
  const double rate = kBytes / seconds_of([&] { logsumexp(in.get(), out.get(), kSide, kSide); }) / 1e9;
  std::printf("         logsumexp reads %.0f GB/s, %.0f %% of what cudaMemcpyAsync moves, %.0f\n", rate,
              100 * rate / roof, roof);
}

// S (heads, queries, keys) = q k^T, and out = S v. cuBLAS stores matrices by columns: to it these are the transposes.
double seconds_of_products(const DeviceCall& call, const AttentionSizes& s) {
  const BlasHandle handle = create_blas();
  const DeviceMemory<float> scores = allocate<float>(s.heads * s.queries * s.keys);
  const auto* q = static_cast<const float*>(call.inputs()[0]);
  const auto* k = static_cast<const float*>(call.inputs()[1]);
  const auto* v = static_cast<const float*>(call.inputs()[2]);
  const float one = 1, zero = 0;
  const int queries = static_cast<int>(s.queries), keys = static_cast<int>(s.keys), heads = static_cast<int>(s.heads);
  const int64_t of_queries = s.queries * s.width, of_keys = s.keys * s.width, of_scores = s.queries * s.keys;
  return seconds_of([&] {
    check_blas(cublasSgemmStridedBatched(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, keys, queries, s.width, &one, k,
                                         s.width, of_keys, q, s.width, of_queries, &zero, scores.get(), keys, of_scores,
                                         heads));
    check_blas(cublasSgemmStridedBatched(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, s.width, queries, keys, &one, v,
                                         s.width, of_keys, scores.get(), keys, of_scores, &zero, call.out(), s.width,
                                         of_queries, heads));
  });
}

// Under the causal mask half of the scores are computed.
void measure_attention(bool causal) {
  const AttentionSizes s = {16, 4096, 4096, kMostWidth, causal};
  const KernelCall call = call_of(AttentionCase{s, true});
  const DeviceCall on_device(call);
  const double operations = 4.0 * static_cast<double>(s.heads * s.queries * s.keys * s.width) / (causal ? 2 : 1);
  const double seconds = seconds_of([&] { on_device.make(); }), products = seconds_of_products(on_device, s);
  std::printf("         attention of %s: %.2f ms, %.1f TFLOP/s; all products alone by cuBLAS: %.2f ms\n",
              call.sizes.c_str(), 1e3 * seconds, operations / seconds / 1e12, 1e3 * products);
}

void measure() {
  measure_logsumexp();
  measure_attention(false);
  measure_attention(true);
}

}  // namespace

int main(int argc, char** argv) { return gpu_main(argc, argv, attention_calls(), measure); }
