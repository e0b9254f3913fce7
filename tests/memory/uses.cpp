// What memory is for: Note [What memory is for].
#include <doctest/doctest.h>

#include "core/memory/claim.h"
#include "core/memory/memory_summary.h"
#include "rushlight.h"

namespace {

using namespace rush;

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<int64_t>(t.nbytes());
  return bytes;
}

MemoryUses since(const MemoryUses& before) {
  MemoryUses now = memory_uses(kCPU);
  for (size_t i = 0; i < kNumMemoryUses; ++i) now[static_cast<MemoryUse>(i)] -= before[static_cast<MemoryUse>(i)];
  return now;
}

TEST_CASE("memory: a training step's tensors count as what they are") {
  const MemoryUses before = memory_uses(kCPU);
  {
    nn::Sequential net(nn::Linear(nn::LinearOptions(128, 256).bias(false)), nn::BatchNorm1d(2048), nn::ReLU(),
                       nn::Linear(nn::LinearOptions(256, 64).bias(false)));
    const std::vector<Tensor> weights = {net->parameters()[0], net->parameters()[3]};  // the others are below 4 KiB
    const auto parameters = since(before)[MemoryUse::Parameter];
    CHECK(parameters == bytes_of(net->parameters()));
    CHECK(since(before)[MemoryUse::Buffer] == 2 * 2048 * 4);
    optim::Adam adam(net->parameters(), 1e-3);
    const Tensor input = ones({32, 2048, 128});
    {
      const Tensor loss = net->forward(input).square().mean();
      // At least the input, what the first product, the normalisation and the rectifier give, and the output.
      CHECK(since(before)[MemoryUse::Activation] >= 32 * 2048 * (128 + 256 + 256 + 64) * 4);
      CHECK(since(before)[MemoryUse::Gradient] == 0);
      loss.backward();
    }
    CHECK(since(before)[MemoryUse::Gradient] == parameters);
    adam.step();
    CHECK(since(before)[MemoryUse::OptimizerState] == 2 * parameters);
    CHECK(since(before)[MemoryUse::Activation] <= static_cast<int64_t>(input.nbytes()));
    net->to(kFloat64);
    CHECK(since(before)[MemoryUse::Parameter] == 2 * parameters);
    adam.zero_grad();
    CHECK(since(before)[MemoryUse::Gradient] == 0);
  }
  for (size_t i = 1; i < kNumMemoryUses; ++i) CHECK(since(before)[static_cast<MemoryUse>(i)] == 0);
}

TEST_CASE("memory: the stronger claim counts, and small storages do not") {
  const MemoryUses before = memory_uses(kCPU);
  const Tensor small = zeros({1023}), large = zeros({1024});
  for (const Tensor& t : {small, large}) rush::detail::claim_memory(t, MemoryUse::Gradient);
  CHECK(since(before)[MemoryUse::Gradient] == 4096);
  rush::detail::claim_memory(large, MemoryUse::Activation);
  CHECK(large.storage()->use() == MemoryUse::Gradient);
  rush::detail::claim_memory(large, MemoryUse::Parameter);
  CHECK(since(before)[MemoryUse::Gradient] == 0);
  CHECK(since(before)[MemoryUse::Parameter] == 4096);
  Tensor other = zeros({4096});
  other.set_data(large);  // which shares the storage
  CHECK(since(before)[MemoryUse::Parameter] == 4096);
}

TEST_CASE("memory: an error that tells of full memory says of what, and what would help") {
  const double fraction = cpu::get_per_process_memory_fraction();
  const auto message_of = [&](auto&& fill) {
    cpu::empty_cache();
    const auto used = static_cast<double>(cpu::memory_reserved());
    cpu::set_per_process_memory_fraction((used + (64 << 20)) / static_cast<double>(cpu::memory_limit()));
    std::string message;
    try {
      fill();
    } catch (const OutOfMemoryError& error) {
      message = error.what();
    }
    cpu::set_per_process_memory_fraction(fraction);
    return message;
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };

  const std::string in_forward = message_of([] {
    nn::Module net;
    Tensor x = net.register_parameter("x", ones({1 << 20}));
    for (int i = 0; i < 1000; ++i) x = x.sin();
  });
  CHECK(has(in_forward, "in use: activations "));
  CHECK(has(in_forward, "autograd::checkpoint"));
  CHECK(has(in_forward, "parameters 4.00 MiB"));
  const std::string in_step = message_of([] {
    std::vector<Tensor> weights;
    for (int i = 0; i < 6; ++i) {
      weights.push_back(zeros({1 << 20}).requires_grad_());
      weights.back().mutable_grad() = zeros({1 << 20});
    }
    optim::Adam adam(weights, 1e-3);
    adam.step();
  });
  CHECK(has(in_step, "optimizer states"));
  CHECK(has(in_step, "parameters 24.00 MiB"));
}

TEST_CASE("memory: the summary has a line for each use") {
  const std::string summary = memory_summary(kCPU);
  for (const char* line : {"memory of cpu", "parameters", "optimizer states", "gradients", "activations", "temporaries",
                           "in use at most", "kept for reuse"}) {
    CHECK_MESSAGE(summary.find(line) != summary.npos, line);
  }
}

}  // namespace
