// What rush::estimate_memory predicts for CUDA, beside what the caching allocator counts for the same program.
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "rushlight.h"
#include "tests/memory/training_programs.h"

namespace {

using namespace rush;
using namespace training_programs;

void check_estimate(const std::string& name, const std::function<void(Device)>& two_steps) {
  const MemoryEstimate estimate = estimate_memory([&] { two_steps(kMeta); }, kCUDA);
  two_steps(kCUDA);  // cuBLAS takes its workspace at the first product, and keeps it: it is in `before`
  cuda::synchronize();
  cuda::reset_peak_memory_stats();
  const int64_t before = cuda::memory_allocated();
  two_steps(kCUDA);
  const int64_t measured = cuda::max_memory_allocated() - before + estimate.at_end;
  const double ratio = static_cast<double>(estimate.peak) / static_cast<double>(measured);
  MESSAGE(name, ": ", estimate.peak, " predicted, ", measured, " measured: ", ratio);
  CHECK_MESSAGE(std::abs(ratio - 1) <= 0.02, name);
  CHECK((estimate.at_end == 0 || estimate.at_end == 32 << 20));  // without a product, with one
  cuda::empty_cache();
}

TEST_CASE("estimate_memory: GPT-2 of six sizes, within 2 % of what CUDA's allocator counts" *
          doctest::skip(!cuda::is_available())) {
  const Gpt sizes[] = {{.width = 128, .layers = 2},
                       {.width = 256, .layers = 4},
                       {.width = 384, .layers = 6, .heads = 6},
                       {.width = 768, .layers = 12, .heads = 12},
                       {.width = 1024, .layers = 24, .heads = 16},
                       {.width = 1280, .layers = 36, .heads = 20}};
  for (Gpt gpt : sizes) {
    gpt.vocabulary = 50257;
    gpt.block = 1024;
    gpt.batch = 4;
    for (const std::optional<ScalarType> lower : {std::optional<ScalarType>(), std::optional(kBFloat16)}) {
      for (const bool checkpoints : {false, true}) {
        gpt.lower = lower;
        gpt.checkpointed = checkpoints ? gpt.layers : 0;
        check_estimate(
            str(gpt.layers, " blocks of ", gpt.width, lower ? ", bfloat16" : "", checkpoints ? ", checkpointed" : ""),
            [&](Device device) { train_gpt(device, gpt); });
      }
    }
  }
}

TEST_CASE("estimate_memory: other nets, within 2 % of what CUDA's allocator counts" *
          doctest::skip(!cuda::is_available())) {
  ResNet resnet{.model = "resnet50", .batch = 32, .image = 224};
  check_estimate("ResNet-50", [&](Device device) { train_resnet(device, resnet); });
  resnet.channels_last = true;
  check_estimate("ResNet-50, channels last", [&](Device device) { train_resnet(device, resnet); });
  check_estimate("MNIST's net", train_mnist);
  check_estimate("LSTM", train_lstm);
  check_estimate("GCN", train_gcn);
}

}  // namespace
