// What a step of GPT-2's training does, at sizes that take no time.
#include "examples/gpt2/pretraining.h"

#include <doctest/doctest.h>

#include <cmath>

#include "examples/warmup_cosine.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using namespace examples;

const GPTConfig kTiny{/*vocab_size=*/13,  /*block_size=*/8, /*n_layer=*/2,
                      /*n_head=*/2,       /*n_embd=*/16,    /*dropout=*/0,
                      /*vocab_padding=*/3};

// Counts up and starts again.
TextData counting() {
  std::vector<int32_t> train(200), validation(40);
  for (size_t i = 0; i < train.size(); ++i) train[i] = static_cast<int32_t>(i % 13);
  for (size_t i = 0; i < validation.size(); ++i) validation[i] = static_cast<int32_t>(i * 5 % 13);
  return TextData(train, validation, kTiny.block_size);
}

Pretraining tiny_run(PretrainingOptions options) {
  manual_seed(1);
  options.warmup_iters = 2;
  options.learning_rate = 1e-2;
  options.min_lr = 1e-3;
  return Pretraining(GPT(kTiny), counting(), options);
}

double difference(GPTImpl& a, GPTImpl& b) {
  double largest = 0;
  const auto first = a.parameters(), second = b.parameters();
  for (size_t i = 0; i < first.size(); ++i) {
    largest = std::max(largest, (first[i] - second[i]).abs().max().item<double>());
  }
  return largest;
}

TEST_CASE("steps lower the loss, in every precision") {
  for (const std::string& dtype : Precision::names()) {
    CAPTURE(dtype);
    PretrainingOptions options;
    options.batch_size = 8;
    options.max_iters = 40;
    options.dtype = dtype;
    options.eval_iters = 4;
    Pretraining run = tiny_run(options);
    const double before = run.estimate(TextData::Train);
    CHECK(before == doctest::Approx(std::log(13.0)).epsilon(0.05));
    StepReport last{};
    for (int i = 0; i < 40; ++i) last = run.step();
    CHECK(run.iteration() == 40);
    CHECK(run.estimate(TextData::Train) < 0.3 * before);
    CHECK(last.loss < 0.3 * before);
    CHECK(last.grad_norm > 0);
    CHECK(last.seconds > 0);
  }
}

TEST_CASE("micro-batches that are accumulated are one large batch") {
  PretrainingOptions options;
  options.batch_size = 8;
  Pretraining whole = tiny_run(options);
  options.batch_size = 2;
  options.total_batch_size = 8 * kTiny.block_size;
  Pretraining parts = tiny_run(options);
  CHECK(parts.tokens_in_step() == whole.tokens_in_step());
  for (int i = 0; i < 3; ++i) {
    const StepReport a = whole.step(), b = parts.step();
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-5));
    CHECK(a.grad_norm == doctest::Approx(b.grad_norm).epsilon(1e-4));
  }
  CHECK(difference(whole.model(), parts.model()) < 1e-4);
}

TEST_CASE("the gradient that AdamW sees is clipped, the norm that is reported is not") {
  PretrainingOptions options;
  options.batch_size = 4;
  options.grad_clip = 1e-3;
  Pretraining run = tiny_run(options);
  const double reported = run.step().grad_norm;
  CHECK(reported > 0.1);
  double squares = 0;
  for (const Tensor& parameter : run.model().parameters()) squares += parameter.grad().square().sum().item<double>();
  CHECK(std::sqrt(squares) == doctest::Approx(1e-3).epsilon(1e-3));
}

TEST_CASE("a run that goes on from its checkpoint takes the same steps") {
  const rush::testing::TemporaryFolder folder;
  PretrainingOptions options;
  options.batch_size = 2;
  Pretraining first = tiny_run(options), second = tiny_run(options);
  for (int i = 0; i < 2; ++i) first.step();
  first.best_loss() = 1.5;
  first.checkpoint().save(folder / "checkpoint");
  const double loss = first.step().loss;
  second.checkpoint().load(folder / "checkpoint");
  CHECK(second.iteration() == 2);
  CHECK(second.best_loss() == 1.5);
  CHECK(second.step().loss == loss);
  CHECK(difference(first.model(), second.model()) == 0);

  GPTConfig other = kTiny;
  other.n_layer = 1;
  Pretraining stranger(GPT(other), counting(), options);
  CHECK_THROWS_AS(stranger.checkpoint().load(folder / "checkpoint"), ValueError);
}

TEST_CASE("what does not divide is refused") {
  CHECK(micro_batches(0, 12, 1024) == 1);
  CHECK(micro_batches(524288, 32, 1024) == 16);
  CHECK_THROWS_AS(micro_batches(524288, 12, 1024), ValueError);
  PretrainingOptions options;
  options.batch_size = 2;
  options.total_batch_size = 8;
  CHECK_THROWS_AS(tiny_run(options), ValueError);
  CHECK_THROWS_AS(TextData(std::vector<int32_t>(8), std::vector<int32_t>(9), 8), ValueError);
  CHECK_THROWS_AS(TextData(std::vector<int32_t>(9), std::vector<int32_t>(8), 8), ValueError);
}

TEST_CASE("operations for a token are PaLM's count") {
  GPTConfig config = kTiny;
  config.vocab_padding = 0;
  GPT model(config);
  const double weights = 13 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16;
  CHECK(flops_per_token(*model) == 6 * weights + 12 * 2 * 16 * 8);
}

TEST_CASE("the learning rate rises, falls as a cosine does, and stays") {
  const WarmupCosine schedule{/*warmup_iters=*/9, /*decay_iters=*/109, /*lowest=*/0.1};
  CHECK(schedule(0) == doctest::Approx(0.1));
  CHECK(schedule(4) == doctest::Approx(0.5));
  CHECK(schedule(9) == doctest::Approx(1));
  CHECK(schedule(59) == doctest::Approx(0.55));
  CHECK(schedule(109) == doctest::Approx(0.1));
  CHECK(schedule(1000) == doctest::Approx(0.1));
  CHECK(WarmupCosine{0, 0, 0.5}(0) == doctest::Approx(0.5));
}

}  // namespace
