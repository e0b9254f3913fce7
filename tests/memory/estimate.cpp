// What rush::estimate_memory predicts, beside what the CPU's allocator counts for the same program.
#include "core/memory/estimate.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/memory/training_programs.h"

namespace {

using namespace rush;
using namespace training_programs;

int64_t measured_peak(const std::function<void(Device)>& program) {
  cpu::empty_cache();
  cpu::reset_peak_memory_stats();
  const int64_t before = cpu::memory_allocated();
  program(kCPU);
  return cpu::max_memory_allocated() - before;
}

TEST_CASE("estimate_memory: within 1 % of what the CPU's allocator counts") {
  struct Training {
    std::string name;
    std::function<void(Device)> two_steps;
  };
  const Training trainings[] = {
      {"GPT, 2 blocks of 128", [](Device d) { train_gpt(d, {.width = 128, .layers = 2}); }},
      {"GPT, 4 blocks of 192", [](Device d) { train_gpt(d, {}); }},
      {"in bfloat16", [](Device d) { train_gpt(d, {.lower = kBFloat16}); }},
      {"2 blocks checkpointed", [](Device d) { train_gpt(d, {.checkpointed = 2}); }},
      {"all checkpointed", [](Device d) { train_gpt(d, {.checkpointed = 4}); }},
      {"in bfloat16, all checkpointed", [](Device d) { train_gpt(d, {.lower = kBFloat16, .checkpointed = 4}); }},
      {"MNIST's net", train_mnist},
      {"LSTM", train_lstm},
      {"GCN", train_gcn},
      {"ResNet-18", [](Device d) { train_resnet(d, {}); }},
      {"ResNet-18, channels last", [](Device d) { train_resnet(d, {.channels_last = true}); }},
  };
  // What threads work in is counted for all at once, which chance decides about.
  const int threads = get_num_threads();
  set_num_threads(1);
  for (const Training& training : trainings) {
    const MemoryEstimate estimate = estimate_memory([&] { training.two_steps(kMeta); });
    const int64_t measured = measured_peak(training.two_steps);
    const double ratio = static_cast<double>(estimate.peak) / static_cast<double>(measured);
    MESSAGE(training.name, ": ", estimate.peak, " predicted, ", measured, " measured: ", ratio);
    CHECK_MESSAGE(std::abs(ratio - 1) <= 0.01, training.name);
    CHECK(estimate.at_peak.sum() == estimate.peak);
    CHECK(estimate.at_end == 0);
  }
  set_num_threads(threads);
}

TEST_CASE("estimate_memory: checkpointing leaves activations out") {
  const auto activations = [](int64_t checkpointed) {
    const MemoryEstimate estimate = estimate_memory([&] { train_gpt(kMeta, {.checkpointed = checkpointed}); }, kCUDA);
    return estimate.at_peak[MemoryUse::Activation];
  };
  CHECK(activations(4) < activations(0) / 2);
}

TEST_CASE("estimate_memory: as a GPU's allocator rounds, and leaves everything as it was") {
  const auto program = [] { const Tensor a = zeros({3}), b = zeros({200}); };
  CHECK(estimate_memory(program).peak == 12 + 800);
  CHECK(estimate_memory(program, kCUDA).peak == 512 + 1024);
  CHECK(get_default_device() == Device(kCPU));
  CHECK_FALSE(autocast::is_autocast_available(kMeta));
  const Tensor before = zeros({100}, kMeta);
  CHECK(estimate_memory([&] { const Tensor copy = before.clone(); }).peak == 400);
}

TEST_CASE("estimate_memory: what goes wrong") {
  CHECK_THROWS_AS(estimate_memory([] { zeros({1}).item<float>(); }), Error);
  CHECK(get_default_device() == Device(kCPU));
  CHECK_THROWS_WITH_AS(estimate_memory([] { estimate_memory([] {}); }),
                       "estimate_memory: another estimate is being made", Error);
  CHECK(estimate_memory([] { zeros({1}); }).peak == 4);  // after an error, too
}

TEST_CASE("estimate_memory: the largest size that fits") {
  const auto program = [](int64_t n) { const Tensor x = zeros({n, 256}); };
  CHECK(largest_that_fits(program, 10 * 1024, 1000) == 10);
  CHECK(largest_that_fits(program, 10 * 1024, 7) == 7);
  CHECK(largest_that_fits(program, 1023, 1000) == 0);
  CHECK(largest_that_fits(program, 1024 * 1024, 1000) == 1000);
  CHECK_THROWS_AS(largest_that_fits(program, 1024, 0), ValueError);
  CHECK(memory_for_tensors(kCPU) > 0);
  CHECK(memory_for_tensors(kCPU) <= cpu::memory_limit());
}

}  // namespace
