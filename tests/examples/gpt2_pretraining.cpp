// What a step of GPT-2's training does, at sizes that take no time.
#include "examples/gpt2/pretraining.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

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

RunLog unread;

Pretraining tiny_run(PretrainingOptions options) {
  manual_seed(1);
  options.warmup_iters = 2;
  options.learning_rate = 1e-2;
  options.min_lr = 1e-3;
  return Pretraining(GPT(kTiny), counting(), options, unread);
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
  first.save(folder / "checkpoint");
  const double loss = first.step().loss;
  second.load(folder / "checkpoint");
  CHECK(second.iteration() == 2);
  CHECK(second.best_loss() == 1.5);
  CHECK(second.step().loss == loss);
  CHECK(difference(first.model(), second.model()) == 0);

  GPTConfig other = kTiny;
  other.n_layer = 1;
  Pretraining stranger(GPT(other), counting(), options, unread);
  CHECK_THROWS_AS(stranger.load(folder / "checkpoint"), ValueError);
}

TEST_CASE("a run goes on with other settings only where that is allowed, and then by these") {
  const rush::testing::TemporaryFolder folder;
  PretrainingOptions options;
  options.batch_size = 2;
  options.eval_iters = 4;
  Pretraining first = tiny_run(options);
  for (int i = 0; i < 3; ++i) first.step();
  first.save(folder / "checkpoint");

  const auto refuses = [&](PretrainingOptions other, const char* message, std::vector<std::string>* changes) {
    CHECK_THROWS_WITH_AS(tiny_run(other).load(folder / "checkpoint", changes), doctest::Contains(message), ValueError);
  };
  PretrainingOptions other = options;
  std::vector<std::string> changes;
  other.batch_size = 4;
  refuses(other, "batch_size: saved with '2', now '4'", &changes);
  other = options;
  other.seed = 5;
  refuses(other, "seed: saved with '1337', now '5'", &changes);
  other = options;
  other.max_iters = 2;
  refuses(other, "max_iters: saved with '100', now '2'", nullptr);
  refuses(other, "has done 3 steps, more than --max_iters 2", &changes);

  manual_seed(1);
  std::vector<int32_t> backwards(200);
  for (size_t i = 0; i < backwards.size(); ++i) backwards[i] = static_cast<int32_t>((200 - i) % 13);
  options.warmup_iters = 2;
  Pretraining another(GPT(kTiny), TextData(backwards, backwards, kTiny.block_size), options, unread);
  CHECK_THROWS_WITH_AS(another.load(folder / "checkpoint"), doctest::Contains("text: saved with '200 + 40 tokens"),
                       ValueError);

  other = options;
  other.beta1 = 0.5;
  other.max_iters = 50;
  other.weight_decay = 0.3;
  refuses(other, "beta1: saved with '0.9', now '0.5'", nullptr);
  changes.clear();
  Pretraining changed = tiny_run(other);
  changed.load(folder / "checkpoint", &changes);
  CHECK(changes == std::vector<std::string>{"max_iters: saved with '100', now '50'",
                                            "weight_decay: saved with '0.1', now '0.3'",
                                            "beta1: saved with '0.9', now '0.5'"});
  const WarmupCosine rates{/*warmup_iters=*/2, /*decay_iters=*/50, /*lowest=*/0.1};
  CHECK(changed.step().learning_rate == doctest::Approx(1e-2 * rates(3)));
  CHECK(changed.step().learning_rate == doctest::Approx(1e-2 * rates(4)));
}

TEST_CASE("a diverged run ends with an error and does not save") {
  const rush::testing::TemporaryFolder folder;
  PretrainingOptions options;
  options.batch_size = 2;
  Pretraining run = tiny_run(options);
  run.step();
  run.save(folder / "checkpoint");
  const std::string good = rush::testing::file_content(folder / "checkpoint");
  {
    const NoGradGuard no_grad;
    run.model().parameters()[0].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  CHECK_THROWS_WITH_AS(run.save(folder / "checkpoint"), doctest::Contains("step 1: the norm of the weights is nan"),
                       ValueError);
  CHECK_THROWS_WITH_AS(run.step(), doctest::Contains("step 2: the loss is nan"), ValueError);
  CHECK_THROWS_WITH_AS(run.estimate(TextData::Train), doctest::Contains("the estimate of step 2: the loss is nan"),
                       ValueError);
  CHECK(rush::testing::file_content(folder / "checkpoint") == good);
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
