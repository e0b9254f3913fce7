// The nets that tests shard: the small GPT, and one whose parameters do not divide evenly.
#pragma once
#include <algorithm>
#include <string_view>

#include "autograd/checkpoint.h"
#include "core/distributed/flight_recorder.h"
#include "nn/parallel/fully_shard.h"
#include "nn/parallel/module_parts.h"
#include "tests/distributed/small_gpt.h"

namespace rush::testing {

using nn::parallel::fully_shard;
using nn::parallel::FullyShardOptions;

// ---- the small GPT, of which each layer and the whole are sharded

inline void shard(SmallGpt& net, const FullyShardOptions& options = {}) {
  for (const auto& layer : net->layers->children()) fully_shard(*layer, options);
  fully_shard(net, options);
}

inline TokenBatch rows_of(const TokenBatch& batch, int64_t part, int64_t parts) {
  const int64_t rows = batch.ids.size(0) / parts;
  return {batch.ids.narrow(0, part * rows, rows), batch.targets.narrow(0, part * rows, rows)};
}

inline TokenBatch own_part(int64_t step) {
  return rows_of(TokenBatch::of_step(step), distributed::get_rank(), distributed::get_world_size());
}

inline Tensor loss_of(SmallGpt& net, const TokenBatch& batch) { return token_loss(net(batch.ids), batch.targets); }

// Two blocks of a width that few numbers of processes divide, and parameters of the net's own. Some of it is optional.
inline constexpr int64_t kNetWidth = 5;

struct BlockImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor hidden = norm(up(x)).tanh();
    return x + (checkpoints ? autograd::checkpoint([this](const Tensor& h) { return down(h).sin(); }, hidden)
                            : down(hidden).sin());
  }
  nn::Linear up{register_module("up", nn::Linear(kNetWidth, 7))},
      down{register_module("down", nn::Linear(7, kNetWidth))};
  nn::LayerNorm norm{register_module("norm", nn::LayerNorm(nn::LayerNormOptions({7})))};
  bool checkpoints = false;
};
RUSH_MODULE(Block);

struct NetImpl : nn::Module {
  NetImpl() {
    tied = register_parameter("tied", tokens->weight);
    scale = register_parameter("scale", ones({1}));
    unused = register_parameter("unused", ones({3}));
  }
  // (N) -> (N, 9)
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids) * scale;
    const auto blocks = [this](const Tensor& y) {
      const Tensor z = second(first(y));
      return calls_first_again ? first(z) : z;
    };
    x = checkpoints ? autograd::checkpoint(blocks, x) : blocks(x);
    return matmul(x, tied.t());
  }
  nn::Embedding tokens{register_module("tokens", nn::Embedding(9, kNetWidth))};
  Block first{register_module("first", Block())}, second{register_module("second", Block())};
  Tensor tied, scale, unused;
  bool checkpoints = false, calls_first_again = false;
};
RUSH_MODULE(Net);

inline Net make_net() {
  manual_seed(3);
  Net net;
  net->to(kFloat64);
  return net;
}

inline void shard(Net& net, const FullyShardOptions& options = {}) {
  fully_shard(net->first, options);
  fully_shard(net->second, options);
  fully_shard(net, options);
}

// (4 N): the same on all; process i has N from 4 i on
inline Tensor ids_of_all() { return arange(4 * distributed::get_world_size(), kInt64).mul(5).remainder(9); }
inline Tensor own_ids() { return ids_of_all().narrow(0, 4 * distributed::get_rank(), 4); }
inline Tensor loss_of(Net& net, const Tensor& ids) { return net(ids).square().mean(); }

// Of the collectives that this process has begun since flight_recorder().clear().
inline int64_t count_begun(const char* name) {
  const auto records = distributed::flight_recorder().records();
  return std::count_if(records.begin(), records.end(), [&](const distributed::CollectiveRecord& record) {
    return std::string_view(record.name) == name;
  });
}

}  // namespace rush::testing
