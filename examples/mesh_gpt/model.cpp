#include "examples/mesh_gpt/model.h"

#include "nn/parallel/context_parallel.h"
#include "rushlight.h"

namespace examples {

namespace {

namespace F = rush::nn::functional;
using rush::Tensor;
using rush::distributed::DeviceMesh;
using rush::distributed::Group;
using rush::nn::parallel::ParallelLinearOptions;

ParallelLinearOptions linear_options(const MeshGPTConfig& config) {
  ParallelLinearOptions options;
  if (config.sequence_parallel) options.sequence_dim(1);
  return options;
}

rush::nn::LayerNorm make_norm(const MeshGPTConfig& config) {
  return rush::nn::LayerNorm(rush::nn::LayerNormOptions({config.n_embd}));
}

// (B, T) -> (B, T / cp, C), or (B, T / cp / tp, C) of positions that are split.
class MeshEmbeddingImpl : public rush::nn::Module {
 public:
  MeshEmbeddingImpl(const MeshGPTConfig& config, const DeviceMesh& mesh)
      : config_(config), tp_(mesh.flatten({"tp"})), cp_(mesh.flatten({"cp"})) {
    rush::nn::Embedding tokens(config.vocab_size, config.n_embd);
    positions_ = register_module("positions", rush::nn::Embedding(config.block_size, config.n_embd));
    const rush::NoGradGuard no_grad;
    rush::nn::init::normal_(tokens->weight, 0, 0.02);
    rush::nn::init::normal_(positions_->weight, 0, 0.02);
    tokens_ = register_module("tokens", rush::nn::VocabParallelEmbedding(tokens, tp_));
  }
  Tensor forward(const Tensor& ids) {
    const Tensor places = rush::arange(config_.block_size, rush::TensorOptions(rush::kInt64).device(ids.device()))
                              .narrow(0, 0, ids.size(1));
    const Tensor own = rush::nn::parallel::context_part(ids, 1, cp_);
    const Tensor x = tokens_(own) + positions_(rush::nn::parallel::context_part(places, 0, cp_));
    return config_.sequence_parallel ? rush::nn::parallel::scatter_to_group(x, 1, tp_) : x;
  }

 private:
  MeshGPTConfig config_;
  Group tp_, cp_;
  rush::nn::VocabParallelEmbedding tokens_{nullptr};
  rush::nn::Embedding positions_{nullptr};
};
RUSH_MODULE(MeshEmbedding);

// x + attention(norm(x)), then x + perceptron(norm(x)).
class MeshBlockImpl : public rush::nn::Module {
 public:
  MeshBlockImpl(const MeshGPTConfig& config, const DeviceMesh& mesh)
      : head_size_(config.n_embd / config.n_head), cp_(mesh.flatten({"cp"})) {
    const Group tp = mesh.flatten({"tp"});
    const int64_t width = config.n_embd;
    const auto column = [&](const char* name, int64_t out) {
      return register_module(name,
                             rush::nn::ColumnParallelLinear(rush::nn::Linear(width, out), tp, linear_options(config)));
    };
    const auto row = [&](const char* name, int64_t in) {
      return register_module(name,
                             rush::nn::RowParallelLinear(rush::nn::Linear(in, width), tp, linear_options(config)));
    };
    norm1 = register_module("norm1", make_norm(config));
    norm2 = register_module("norm2", make_norm(config));
    qkv_ = column("qkv", 3 * width);  // head by head: its query, its key, its value
    project = row("project", width);
    up_ = column("up", 4 * width);
    down = row("down", 4 * width);
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = x + attention(norm1(x));
    return y + down(F::gelu(up_(norm2(y))));
  }

  rush::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  rush::nn::RowParallelLinear project{nullptr}, down{nullptr};

 private:
  Tensor attention(const Tensor& x) {
    const Tensor qkv = qkv_(x).unflatten(-1, {-1, 3, head_size_});                  // (B, T, heads / tp, 3, D)
    const auto part = [&](int64_t i) { return qkv.select(3, i).transpose(1, 2); };  // (B, heads / tp, T, D)
    const Tensor y = rush::nn::parallel::ring_attention(part(0), part(1), part(2), cp_, /*is_causal=*/true);
    return project(y.transpose(1, 2).flatten(2));
  }

  int64_t head_size_;
  Group cp_;
  rush::nn::ColumnParallelLinear qkv_{nullptr}, up_{nullptr};
};
RUSH_MODULE(MeshBlock);

// (B, T / cp, C) -> (B, T / cp, V / tp).
class MeshHeadImpl : public rush::nn::Module {
 public:
  MeshHeadImpl(const MeshGPTConfig& config, const DeviceMesh& mesh)
      : sequence_parallel_(config.sequence_parallel), tp_(mesh.flatten({"tp"})) {
    norm = register_module("norm", make_norm(config));
    const rush::nn::Linear scores(rush::nn::LinearOptions(config.n_embd, config.vocab_size).bias(false));
    scores_ = register_module("scores", rush::nn::ColumnParallelLinear(scores, tp_));
  }
  Tensor forward(const Tensor& x) {
    const Tensor normalised = norm(x);
    return scores_(sequence_parallel_ ? rush::nn::parallel::gather_from_group(normalised, 1, tp_) : normalised);
  }

  rush::nn::LayerNorm norm{nullptr};

 private:
  bool sequence_parallel_;
  Group tp_;
  rush::nn::ColumnParallelLinear scores_{nullptr};
};
RUSH_MODULE(MeshHead);

void check(const MeshGPTConfig& config, const DeviceMesh& mesh) {
  const int tp = mesh.size("tp");
  RUSH_CHECK_VALUE(config.n_embd % config.n_head == 0 && config.n_head % tp == 0, "a width of ", config.n_embd, " and ",
                   config.n_head, " heads cannot be split among ", tp, " processes of tp");
}

}  // namespace

rush::nn::Sequential make_mesh_gpt(const MeshGPTConfig& config, const DeviceMesh& mesh) {
  check(config, mesh);
  rush::nn::Sequential net;
  net->push_back("embedding", MeshEmbedding(config, mesh));
  for (int64_t i = 0; i < config.n_layer; ++i) net->push_back(rush::str("block", i), MeshBlock(config, mesh));
  net->push_back("head", MeshHead(config, mesh));
  return net;
}

std::vector<Tensor> parameters_of_positions(const rush::nn::Module& part) {
  std::vector<Tensor> found;
  const auto add_norm = [&](const rush::nn::LayerNorm& norm) {
    found.push_back(norm->weight);
    found.push_back(norm->bias);
  };
  for (const std::shared_ptr<rush::nn::Module>& module : part.modules()) {
    if (const auto* block = module->as<MeshBlockImpl>()) {
      add_norm(block->norm1);
      add_norm(block->norm2);
      found.push_back(block->project->bias);
      found.push_back(block->down->bias);
    } else if (const auto* head = module->as<MeshHeadImpl>()) {
      add_norm(head->norm);
    }
  }
  return found;
}

}  // namespace examples
