// The net of the tests that split a training among processes: a GPT of four layers, and what one process makes of it.
#pragma once
#include <string>
#include <vector>

#include "core/device/generator.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/nn/attention.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "optim/optim.h"
#include "tests/distributed/on_gpus.h"

namespace rush::testing {

inline constexpr int64_t kVocabulary = 48, kBlock = 16, kWidth = 32, kHeads = 8, kLayers = 4, kBatch = 8;

struct LayerImpl : nn::Cloneable<LayerImpl> {
  LayerImpl() { reset(); }
  void reset() override {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    query = register_module("query", nn::Linear(kWidth, kWidth));
    key = register_module("key", nn::Linear(kWidth, kWidth));
    value = register_module("value", nn::Linear(kWidth, kWidth));
    project = register_module("project", nn::Linear(kWidth, kWidth));
    up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", nn::Linear(4 * kWidth, kWidth));
  }
  // (B, T, C) -> (B, T, C)
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attention(norm1(x));
    return y + down(nn::functional::gelu(up(norm2(y))));
  }
  Tensor attention(const Tensor& x) {
    const auto heads = [&](nn::Linear& projection) {  // (B, T, C) -> (B, H, T, D)
      return projection(x).view({x.size(0), x.size(1), -1, kWidth / kHeads}).transpose(1, 2);
    };
    const Tensor y = scaled_dot_product_attention(heads(query), heads(key), heads(value), {}, 0.0, /*is_causal=*/true);
    return project(y.transpose(1, 2).reshape({x.size(0), x.size(1), -1}));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, project{nullptr}, up{nullptr}, down{nullptr};
};
RUSH_MODULE(Layer);

struct SmallGptImpl : nn::Cloneable<SmallGptImpl> {
  SmallGptImpl() { reset(); }
  void reset() override {
    tokens = register_module("tokens", nn::Embedding(kVocabulary, kWidth));
    positions = register_module("positions", nn::Embedding(kBlock, kWidth));
    layers = register_module("layers", nn::ModuleList());
    for (int64_t i = 0; i < kLayers; ++i) layers->push_back(Layer());
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kVocabulary).bias(false)));
  }
  // (B, T) -> (B, T, V)
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids) + positions(arange(ids.size(1), kInt64));
    for (int64_t i = 0; i < kLayers; ++i) x = Layer(layers->ptr<LayerImpl>(static_cast<size_t>(i)))(x);
    return head(norm(x));
  }
  nn::Embedding tokens{nullptr}, positions{nullptr};
  nn::ModuleList layers{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
RUSH_MODULE(SmallGpt);

// The same on every process. In double precision, in which fifty steps do not make more of a sum's rounding than the
// 1e-6 by which losses may differ.
inline SmallGpt make_small_gpt() {
  manual_seed(11);
  SmallGpt net;
  net->to(kFloat64);
  return net;
}

// What all processes train on together in a step: `ids` (B, T), `targets` (B, T), of which each takes its part.
struct TokenBatch {
  Tensor ids, targets;
  // Sequences that can be learned: each token follows from the one before and a step of its sequence's own.
  static TokenBatch of_step(int64_t step) {
    Generator generator = make_generator<CPUGeneratorImpl>(500 + static_cast<uint64_t>(step));
    const auto draw = [&](int64_t from, int64_t to) {
      return testing::here(randint(from, to, {kBatch, 1}, generator, TensorOptions(kInt64).device(kCPU)));
    };
    const Tensor first = draw(0, kVocabulary), pace = draw(1, 4);
    const Tensor all = (first + pace * arange(kBlock + 1, kInt64)).remainder(kVocabulary);
    return {all.narrow(1, 0, kBlock).contiguous(), all.narrow(1, 1, kBlock).contiguous()};
  }
};

// The mean over all tokens.
inline Tensor token_loss(const Tensor& scores, const Tensor& targets) {
  return nn::functional::cross_entropy(scores.flatten(0, 1), targets.flatten());
}

inline optim::AdamW make_optimizer(std::vector<Tensor> parameters) {
  return optim::AdamW(std::move(parameters), optim::AdamWOptions(1e-2));
}

struct TrainingRun {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

// One process with the whole net and the whole batch.
inline TrainingRun train_small_gpt_alone(int64_t steps) {
  SmallGpt net = make_small_gpt();
  optim::AdamW optimizer = make_optimizer(net->parameters());
  TrainingRun run;
  for (int64_t step = 0; step < steps; ++step) {
    const TokenBatch batch = TokenBatch::of_step(step);
    optimizer.zero_grad();
    const Tensor loss = token_loss(net(batch.ids), batch.targets);
    loss.backward();
    optimizer.step();
    run.losses.push_back(loss.item<double>());
  }
  run.parameters = net->parameters();
  return run;
}

}  // namespace rush::testing
