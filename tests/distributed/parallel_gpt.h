// The small GPT with its weights split among the processes of a mesh's "tp", and its sequences among those of "cp".
#pragma once
#include <string>
#include <vector>

#include "core/distributed/device_mesh.h"
#include "nn/parallel/context_parallel.h"
#include "nn/parallel/tensor_parallel.h"
#include "tests/distributed/small_gpt.h"

namespace rush::testing {

struct ParallelLayerImpl : nn::Module {
  // `splits_sequence`: norms and residual sums have a part of the positions.
  ParallelLayerImpl(const Layer& whole, const distributed::DeviceMesh& mesh, bool splits_sequence) {
    const distributed::Group tp = mesh.flatten({"tp"});
    nn::parallel::ParallelLinearOptions options;
    if (splits_sequence) options.sequence_dim(1);
    norm1 = register_module("norm1", whole->norm1);
    norm2 = register_module("norm2", whole->norm2);
    query = register_module("query", nn::ColumnParallelLinear(whole->query, tp, options));
    key = register_module("key", nn::ColumnParallelLinear(whole->key, tp, options));
    value = register_module("value", nn::ColumnParallelLinear(whole->value, tp, options));
    project = register_module("project", nn::RowParallelLinear(whole->project, tp, options));
    up = register_module("up", nn::ColumnParallelLinear(whole->up, tp, options));
    down = register_module("down", nn::RowParallelLinear(whole->down, tp, options));
    cp = mesh.flatten({"cp"});
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attention(norm1(x));
    return y + down(nn::functional::gelu(up(norm2(y))));
  }
  Tensor attention(const Tensor& x) {
    const auto heads = [&](nn::ColumnParallelLinear& projection) {  // (B, T, C) -> (B, H / tp, T, D)
      return projection(x).unflatten(-1, {-1, kWidth / kHeads}).transpose(1, 2);
    };
    const Tensor y = nn::parallel::ring_attention(heads(query), heads(key), heads(value), cp, /*is_causal=*/true);
    return project(y.transpose(1, 2).flatten(2));
  }
  // Whose gradients are partial where positions are split.
  std::vector<Tensor> of_positions() const {
    return {norm1->weight, norm1->bias, norm2->weight, norm2->bias, project->bias, down->bias};
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::ColumnParallelLinear query{nullptr}, key{nullptr}, value{nullptr}, up{nullptr};
  nn::RowParallelLinear project{nullptr}, down{nullptr};
  distributed::Group cp;
};
RUSH_MODULE(ParallelLayer);

// The loss of this process's positions and sequences.
struct ParallelGptImpl : nn::Module {
  ParallelGptImpl(const SmallGpt& whole, const distributed::DeviceMesh& mesh, bool splits_sequence)
      : tp(mesh.flatten({"tp"})), cp(mesh.flatten({"cp"})), splits_sequence(splits_sequence) {
    tokens = register_module("tokens", nn::VocabParallelEmbedding(whole->tokens, tp));
    positions = register_module("positions", whole->positions);
    for (int64_t i = 0; i < kLayers; ++i) {
      const Layer layer(whole->layers->ptr<LayerImpl>(static_cast<size_t>(i)));
      layers.push_back(register_module("layer" + std::to_string(i), ParallelLayer(layer, mesh, splits_sequence)));
    }
    norm = register_module("norm", whole->norm);
    head = register_module("head", nn::ColumnParallelLinear(whole->head, tp));
  }
  // ids and targets (B, T) of all positions of this process's sequences.
  Tensor forward(const Tensor& ids, const Tensor& targets) {
    using namespace nn::parallel;
    const Tensor places = context_part(arange(ids.size(1), kInt64), 0, cp);
    Tensor x = tokens(context_part(ids, 1, cp)) + positions(places);
    if (splits_sequence) x = scatter_to_group(x, 1, tp);
    for (ParallelLayer& layer : layers) x = layer(x);
    x = norm(x);
    if (splits_sequence) x = gather_from_group(x, 1, tp);
    return vocab_parallel_cross_entropy(head(x), context_part(targets, 1, cp), tp);
  }
  void finish_gradients() {
    if (!splits_sequence) return;
    std::vector<Tensor> partial{norm->weight, norm->bias};
    for (ParallelLayer& layer : layers) {
      for (const Tensor& parameter : layer->of_positions()) partial.push_back(parameter);
    }
    nn::parallel::sum_gradients(partial, tp);
  }
  nn::VocabParallelEmbedding tokens{nullptr};
  nn::Embedding positions{nullptr};
  std::vector<ParallelLayer> layers;
  nn::LayerNorm norm{nullptr};
  nn::ColumnParallelLinear head{nullptr};
  distributed::Group tp, cp;
  bool splits_sequence;
};
RUSH_MODULE(ParallelGpt);

}  // namespace rush::testing
