#include "examples/gpt/gpt.h"

#include <doctest/doctest.h>

#include <cmath>

#include "examples/gpt/text_data.h"
#include "rushlight.h"

namespace {

using namespace rush;
using namespace examples;

const GPTConfig kSmall{/*vocab_size=*/11, /*block_size=*/8, /*n_layer=*/2, /*n_head=*/2, /*n_embd=*/16};

TEST_CASE("the model has GPT-2's parameters, the head being the token embedding") {
  GPT model(kSmall);
  const auto names = model->named_parameters().keys();
  CHECK(names.size() == 2 + 2 * 12 + 2);
  CHECK(names.front() == "wte.weight");
  CHECK(names.back() == "ln_f.bias");
  CHECK(model->named_parameters()["h.1.c_attn.weight"].sizes() == IntArrayRef({48, 16}));
  CHECK(model->parameter_count() == 11 * 16 + 8 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16);
  CHECK_THROWS_AS(GPT(GPTConfig{11, 8, 2, 3, 16}), ValueError);
}

TEST_CASE("a new model knows nothing: its loss is that of guessing") {
  manual_seed(0);
  GPT model(kSmall);
  const Tensor tokens = tensor({1, 2, 3, 4, 5, 6, 7, 8}).view({1, 8});
  CHECK(model->forward(tokens).sizes() == IntArrayRef({1, 8, 11}));
  // Tokens other than the inputs, which the head, being their embedding, favours a little.
  const Tensor targets = tensor({9, 10, 0, 9, 10, 0, 9, 10}).view({1, 8});
  CHECK(model->loss(tokens, targets).item<double>() == doctest::Approx(std::log(11.0)).epsilon(0.05));
  CHECK_THROWS_AS(model->forward(zeros({1, 9}, kLong)), ValueError);
}

TEST_CASE("no position sees what follows it") {
  manual_seed(1);
  GPT model(kSmall);
  const Tensor a = model->forward(tensor({1, 2, 3, 4}).view({1, 4}));
  const Tensor b = model->forward(tensor({1, 2, 9, 9}).view({1, 4}));
  const Tensor difference = (a - b).abs().sum(IntArrayRef({0, 2}));
  CHECK(difference[1].item<double>() < 1e-5);
  CHECK(difference[2].item<double>() > 1e-3);
}

TEST_CASE("the model learns a sequence by heart and writes it on") {
  manual_seed(2);
  GPT model(kSmall);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-2));
  const Tensor text = tensor({3, 1, 4, 1, 5, 9, 2, 6, 0}).view({1, 9});
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    model->loss(text.narrow(1, 0, 8), text.narrow(1, 1, 8)).backward();
    optimizer.step();
  }
  CHECK(model->loss(text.narrow(1, 0, 8), text.narrow(1, 1, 8)).item<double>() < 0.1);
  const Tensor written = model->generate(text.narrow(1, 0, 3), 5, /*temperature=*/0.1, /*top_k=*/1);
  CHECK((written - text.narrow(1, 0, 8)).abs().sum().item<int64_t>() == 0);
  CHECK(model->generate(text, 3).size(1) == 12);  // longer than a block
}

TEST_CASE("texts become batches of tokens and those that follow") {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "abcd\n";
  const Vocabulary vocabulary(text);
  CHECK(vocabulary.size() == 5);
  CHECK(vocabulary.bytes() == "\nabcd");
  CHECK(vocabulary.token('c') == 3);
  CHECK_THROWS_AS(vocabulary.token('x'), ValueError);

  const TextData data(text, vocabulary, 4);
  CHECK(data.size(TextData::Train) == 225);
  CHECK(data.size(TextData::Validation) == 25);
  Generator generator = make_generator<CPUGeneratorImpl>(1);
  const auto [tokens, next] = data.random_batch(TextData::Train, 6, generator);
  CHECK(tokens.sizes() == IntArrayRef({6, 4}));
  CHECK((tokens.narrow(1, 1, 3) - next.narrow(1, 0, 3)).abs().sum().item<int64_t>() == 0);
  const auto batches = data.in_order(TextData::Validation, 4, 100);
  REQUIRE(batches.size() == 2);
  CHECK(batches[1].first.size(0) == 2);
  CHECK(vocabulary.decode(batches[0].first).substr(0, 8) == "abcd\nabc");
  CHECK_THROWS_AS(TextData("short", Vocabulary("short"), 4), ValueError);
}

}  // namespace
