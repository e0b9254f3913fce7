#include "examples/gpt/gpt.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

#include "autograd/node.h"
#include "examples/gpt/linear_cross_entropy.h"
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
  CHECK(model->named_parameters()["h.1.attn.c_attn.weight"].sizes() == IntArrayRef({48, 16}));
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

TEST_CASE("checkpointed blocks have the gradients of others") {
  const Tensor tokens = tensor({1, 2, 3, 4, 5, 6, 7, 8}).view({1, 8}), targets = (tokens + 1).remainder(11);
  const auto gradients = [&](int64_t checkpointed) {
    manual_seed(3);
    GPTConfig config = kSmall;
    config.dropout = 0.2;  // the second run of a block draws what the first drew
    GPT model(config);
    model->checkpoint_blocks(checkpointed);
    model->loss(tokens, targets).backward();
    return nn::utils::gradients_of(model->parameters());
  };
  const std::vector<Tensor> expected = gradients(0);
  for (const int64_t checkpointed : {1, 2}) {
    const std::vector<Tensor> got = gradients(checkpointed);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(expected[i]));
  }
}

// The nodes of the graph that ends in `t`, in the order in which the backward pass reaches them, by their letters.
std::string backward_order(const Tensor& t, const std::map<std::string, char>& letters) {
  std::map<uint64_t, const Node*, std::greater<>> nodes;
  std::vector<const Node*> left{gradient_edge(t).node.get()};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (!node || !nodes.emplace(node->sequence_nr(), node).second) continue;
    for (const Edge& edge : node->next_edges()) left.push_back(edge.node.get());
  }
  std::string order;
  for (const auto& [number, node] : nodes) {
    if (const auto letter = letters.find(node->name()); letter != letters.end()) order += letter->second;
  }
  return order;
}

TEST_CASE("where weights are cast by block, a block's gradients come before the backward pass of the one before it") {
  const Tensor tokens = tensor({1, 2, 3, 4, 5, 6, 7, 8}).view({1, 8});
  GPT model(kSmall);
  model->cast_by_block();
  const autocast::Autocast scope(kCPU, kBFloat16);
  const Tensor loss = model->loss(tokens, tokens);
  CHECK(backward_order(loss, {{"CastAllBackward", 'c'}, {"GeluPerceptronBackward", 'p'}}) == "pcpc");
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

TEST_CASE("reading on with a cache gives the logits of reading all again") {
  manual_seed(4);
  GPT model(kSmall);
  model->eval();
  const NoGradGuard no_grad;
  const Tensor tokens = randint(0, 11, {3, 8}, kInt64);
  const Tensor whole = model->forward(tokens);
  KeyValueCache cache;
  int64_t at = 0;
  for (const int64_t length : {3, 1, 2, 1, 1}) {  // the first read, single tokens, and several after others
    const Tensor part = model->forward(tokens.narrow(1, at, length), &cache);
    CHECK((part - whole.narrow(1, at, length)).abs().max().item<double>() < 1e-5);
    at += length;
    CHECK(cache.length == at);
  }
  CHECK_THROWS_AS(model->forward(tokens.narrow(1, 0, 1), &cache), ValueError);
  int64_t bytes = 0;
  for (const KeyValueCache::Layer& layer : cache.layers) bytes += layer.keys.nbytes() + layer.values.nbytes();
  CHECK(bytes == 3 * KeyValueCache::bytes(kSmall, kFloat32));
}

TEST_CASE("what is written with a cache is what is written without, within a block and beyond it") {
  manual_seed(5);
  GPT model(kSmall);
  const NoGradGuard no_grad;
  for (const Tensor& parameter : model->parameters()) parameter.mul_(5);  // so that the likeliest token is far ahead
  const Tensor start = randint(0, 11, {2, 2}, kInt64);
  Tensor expected = start;
  for (int i = 0; i < 12; ++i) {
    const int64_t context = std::min<int64_t>(expected.size(1), 8);
    const Tensor logits = model->forward(expected.narrow(1, expected.size(1) - context, context)).select(1, -1);
    expected = cat({expected, logits.argmax(-1, true)}, 1);
  }
  const Tensor written = model->generate(start, 12, /*temperature=*/1, /*top_k=*/1);
  CHECK((written - expected).abs().sum().item<int64_t>() == 0);
}

TEST_CASE("the loss of a large vocabulary is that of its logits, however many are held at once") {
  manual_seed(6);
  const Tensor x = randn({7, 4}, kFloat64), w = randn({9, 4}, kFloat64), bias = randn({9}, kFloat64);
  const Tensor target = tensor({1, 8, 0, 3, 3, 2, 5});
  const auto gradients = [&](int64_t max_logits) {
    const Tensor input = x.clone().requires_grad_(), weight = w.clone().requires_grad_();
    const Tensor loss = max_logits > 0 ? linear_cross_entropy(input, weight, bias, target, max_logits)
                                       : nn::functional::cross_entropy(linear(input, weight, bias), target);
    (loss * 3).backward();
    return std::vector<Tensor>{loss.detach(), input.grad(), weight.grad()};
  };
  const auto expected = gradients(0);
  for (const int64_t max_logits : {1, 9, 18, 30, 1000}) {
    CAPTURE(max_logits);
    const auto got = gradients(max_logits);
    CHECK(allclose(got[0], expected[0], 1e-12, 0));
    CHECK(allclose(got[1], expected[1], 1e-12, 1e-12));
    CHECK(allclose(got[2], expected[2], 1e-12, 1e-12));
  }
  const Tensor input = x.clone().requires_grad_();
  CHECK_THROWS_AS(autograd::grad({linear_cross_entropy(input, w, {}, target)}, {input}, {}, true, true),
                  NotImplementedError);
  CHECK_THROWS_AS(linear_cross_entropy(x.narrow(0, 0, 0), w, {}, target.narrow(0, 0, 0)), ValueError);
  const NoGradGuard no_grad;
  CHECK(allclose(linear_cross_entropy(x, w, bias, target), expected[0], 1e-12, 0));
}

TEST_CASE("texts become batches of tokens and those that follow") {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "abcd\n";
  const Vocabulary vocabulary(text);
  CHECK(vocabulary.size() == 5);
  CHECK(vocabulary.bytes() == "\nabcd");
  CHECK(vocabulary.token('c') == 3);
  CHECK_THROWS_AS(vocabulary.token('x'), ValueError);
  CHECK(equal(vocabulary.encode("dab\n"), tensor({4, 1, 2, 0}, kLong)));
  CHECK(vocabulary.encode("").numel() == 0);
  CHECK_THROWS_AS(vocabulary.encode("abx"), ValueError);

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
