// What keeps a training loop from waiting for the GPU at each step: numbers that are read late, and steps as graphs.
#include <doctest/doctest.h>

#include <numeric>

#include "examples/gpt2/pretraining.h"
#include "examples/late_numbers.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"

using namespace rush;

TEST_CASE("numbers that are read late are those of their step, although the next step overwrites them" *
          doctest::skip(!cuda::is_available())) {
  examples::LateNumbers numbers(3);
  const Tensor loss = zeros({2}, kCUDA);
  std::vector<double> read;
  const auto take = [&](bool all) {
    while (const std::optional<Tensor> late = numbers.pop(all)) read.push_back((*late)[1].item<double>());
  };
  for (int i = 0; i < 10; ++i) {
    loss.fill_(i);
    numbers.push(loss);
    take(false);
    CHECK(static_cast<int>(read.size()) == std::max(0, i - 2));
  }
  take(true);
  std::vector<double> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(read == expected);
}

TEST_CASE("GPT-2's steps as a graph have the losses and norms of steps outside" *
          doctest::skip(testing::nothing_is_cached())) {
  const auto train = [](const char* dtype, bool graph) {
    manual_seed(4);
    examples::GPTConfig config{100, 16, 2, 2, 32};
    config.vocab_padding = 28;
    examples::PretrainingOptions options;
    options.batch_size = 4;
    options.total_batch_size = 2 * 4 * 16;  // two micro-batches
    options.device = kCUDA;
    options.dtype = dtype;
    options.graph = graph;
    const Tensor tokens = randint(0, 100, {3000}, kInt32);
    const auto* first = tokens.data_ptr<int32_t>();
    examples::RunLog unread;
    examples::Pretraining run(examples::GPT(config),
                              examples::TextData({first, first + 2900}, {first, first + 100}, 16), options, unread);
    std::vector<double> numbers;
    for (int i = 0; i < 12; ++i) {
      const examples::StepReport step = run.step();
      numbers.push_back(step.loss);
      numbers.push_back(step.grad_norm);
    }
    return numbers;
  };
  for (const char* dtype : {"float32", "bfloat16"}) {
    INFO(dtype);
    const bool narrow = dtype != std::string("float32");  // and cuDNN's attention sums in any order
    const std::vector<double> eager = train(dtype, false), graphed = train(dtype, true);
    REQUIRE(eager.size() == graphed.size());
    // Adam's corrections are computed on the device, and differ in the last bits from the host's.
    for (size_t i = 0; i < eager.size(); ++i) {
      CHECK(graphed[i] == doctest::Approx(eager[i]).epsilon(narrow ? 1e-2 : 1e-4));
    }
    CHECK(eager[0] == graphed[0]);
    if (!narrow) CHECK(eager[1] == graphed[1]);
  }
}
