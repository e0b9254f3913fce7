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

// What the mesh's modules are made of: those of a whole model, by GPT-2's names.
class Source {
 public:
  Source(const GPT& whole, const DeviceMesh& mesh, const MeshModelOptions& options)
      : config(whole->config()),
        options(options),
        tp(mesh.flatten({"tp"})),
        cp(mesh.flatten({"cp"})),
        modules_(whole->named_modules()) {}

  rush::nn::Linear linear(const std::string& name) const { return get<rush::nn::LinearImpl>(name); }
  rush::nn::LayerNorm norm(const std::string& name) const { return get<rush::nn::LayerNormImpl>(name); }
  const Tensor& table(const std::string& name) const { return get<rush::nn::EmbeddingImpl>(name)->weight; }

  // Head by head: Note [GPT-2 on a mesh].
  rush::nn::Linear attention_input(const std::string& name) const {
    rush::nn::Linear copy(std::dynamic_pointer_cast<rush::nn::LinearImpl>(linear(name)->clone()));
    copy->weight = rows_by_head(copy->weight.detach(), config.n_head).requires_grad_();
    copy->bias = rows_by_head(copy->bias.detach(), config.n_head).requires_grad_();
    return copy;
  }
  Tensor padded_tokens() const {
    const Tensor& tokens = table("wte");
    const int64_t rows = tokens.size(0);
    return rush::cat({tokens.detach(), rush::zeros({padded_rows(rows) - rows, config.n_embd}, tokens.options())});
  }
  ParallelLinearOptions linear_options() const {
    ParallelLinearOptions linear;
    if (options.sequence_parallel) linear.sequence_dim(1);
    return linear;
  }

  const GPTConfig config;
  const MeshModelOptions options;
  const Group tp, cp;

 private:
  template <class M>
  std::shared_ptr<M> get(const std::string& name) const {
    return std::dynamic_pointer_cast<M>(modules_[name]);
  }

  const rush::OrderedDict<std::string, std::shared_ptr<rush::nn::Module>> modules_;
};

rush::nn::Embedding trained_embedding(const Tensor& table) {
  return rush::nn::Embedding::from_pretrained(table.detach().clone(),
                                              rush::nn::EmbeddingFromPretrainedOptions().freeze(false));
}

rush::nn::LayerNorm copy_of(const rush::nn::LayerNorm& norm) {
  return std::dynamic_pointer_cast<rush::nn::LayerNormImpl>(norm->clone());
}

// (B, T) -> (B, T / cp, C), or (B, T / cp / tp, C) of positions that are split.
class MeshEmbeddingImpl : public rush::nn::Module {
 public:
  explicit MeshEmbeddingImpl(const Source& source) : options_(source.options), tp_(source.tp), cp_(source.cp) {
    wte_ =
        register_module("wte", rush::nn::VocabParallelEmbedding(trained_embedding(source.padded_tokens()), source.tp));
    wpe_ = register_module("wpe", trained_embedding(source.table("wpe")));
  }
  Tensor forward(const Tensor& ids) {
    const auto precision = options_.precision.scope();
    const Tensor positions = rush::arange(ids.size(1), rush::TensorOptions(rush::kLong).device(ids.device()));
    const Tensor own = rush::nn::parallel::context_part(ids, 1, cp_);
    const Tensor x = wte_(own) + wpe_(rush::nn::parallel::context_part(positions, 0, cp_));
    return options_.sequence_parallel ? rush::nn::parallel::scatter_to_group(x, 1, tp_) : x;
  }

 private:
  const MeshModelOptions options_;
  const Group tp_, cp_;
  rush::nn::VocabParallelEmbedding wte_{nullptr};
  rush::nn::Embedding wpe_{nullptr};
};
RUSH_MODULE(MeshEmbedding);

// (B, T / cp, C) -> (B, T / cp, C)
class MeshAttentionImpl : public rush::nn::Module {
 public:
  MeshAttentionImpl(const Source& source, const std::string& name)
      : head_size_(source.config.n_embd / source.config.n_head), cp_(source.cp) {
    c_attn_ = register_module("c_attn", rush::nn::ColumnParallelLinear(source.attention_input(name + ".c_attn"),
                                                                       source.tp, source.linear_options()));
    c_proj = register_module(
        "c_proj", rush::nn::RowParallelLinear(source.linear(name + ".c_proj"), source.tp, source.linear_options()));
  }
  Tensor forward(const Tensor& x) {
    const Tensor qkv = c_attn_(x).unflatten(-1, {-1, 3, head_size_});               // (B, T, heads / tp, 3, D)
    const auto part = [&](int64_t i) { return qkv.select(3, i).transpose(1, 2); };  // (B, heads / tp, T, D)
    const Tensor y = rush::nn::parallel::ring_attention(part(0), part(1), part(2), cp_, /*is_causal=*/true);
    return c_proj(y.transpose(1, 2).flatten(2));
  }

  rush::nn::RowParallelLinear c_proj{nullptr};

 private:
  const int64_t head_size_;
  const Group cp_;
  rush::nn::ColumnParallelLinear c_attn_{nullptr};
};
RUSH_MODULE(MeshAttention);

// (B, T / cp, C) -> (B, T / cp, C)
class MeshPerceptronImpl : public rush::nn::Module {
 public:
  MeshPerceptronImpl(const Source& source, const std::string& name) {
    c_fc_ = register_module(
        "c_fc", rush::nn::ColumnParallelLinear(source.linear(name + ".c_fc"), source.tp, source.linear_options()));
    c_proj = register_module(
        "c_proj", rush::nn::RowParallelLinear(source.linear(name + ".c_proj"), source.tp, source.linear_options()));
  }
  Tensor forward(const Tensor& x) { return c_proj(rush::gelu(c_fc_(x), "tanh")); }

  rush::nn::RowParallelLinear c_proj{nullptr};

 private:
  rush::nn::ColumnParallelLinear c_fc_{nullptr};
};
RUSH_MODULE(MeshPerceptron);

// x + attention(norm(x)), then x + perceptron(norm(x)).
class MeshBlockImpl : public rush::nn::Module {
 public:
  MeshBlockImpl(const Source& source, const std::string& name) : options_(source.options) {
    ln_1 = register_module("ln_1", copy_of(source.norm(name + ".ln_1")));
    attn = register_module("attn", MeshAttention(source, name + ".attn"));
    ln_2 = register_module("ln_2", copy_of(source.norm(name + ".ln_2")));
    mlp = register_module("mlp", MeshPerceptron(source, name + ".mlp"));
  }
  Tensor forward(const Tensor& x) {
    if (!options_.checkpoint_blocks) return compute(x);
    return rush::autograd::checkpoint([this](const Tensor& input) { return compute(input); }, x);
  }

  rush::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  MeshAttention attn{nullptr};
  MeshPerceptron mlp{nullptr};

 private:
  Tensor compute(const Tensor& x) {
    const auto precision = options_.precision.scope();
    const Tensor y = x + attn(ln_1(x));
    return y + mlp(ln_2(y));
  }

  const MeshModelOptions options_;
};
RUSH_MODULE(MeshBlock);

// (B, T / cp, C) -> (B, T / cp, V / tp).
class MeshHeadImpl : public rush::nn::Module {
 public:
  explicit MeshHeadImpl(const Source& source) : options_(source.options), tp_(source.tp) {
    ln_f = register_module("ln_f", copy_of(source.norm("ln_f")));
    const Tensor tokens = source.padded_tokens();
    rush::nn::Linear whole(rush::nn::LinearOptions(1, 1).bias(false));
    whole->weight = tokens.requires_grad_();
    wte_ = register_module("wte", rush::nn::ColumnParallelLinear(whole, tp_));
    wte_->bias = bias_of_padding(source.config.vocab_size, tokens.size(0));
  }
  Tensor forward(const Tensor& x) {
    const auto precision = options_.precision.scope();
    if (wte_->bias.defined()) wte_->bias = wte_->bias.to(x.device());
    const Tensor normalised = ln_f(x);
    return wte_(options_.sequence_parallel ? rush::nn::parallel::gather_from_group(normalised, 1, tp_) : normalised);
  }

  rush::nn::LayerNorm ln_f{nullptr};

 private:
  // Of this process's rows; undefined where all of them stand for tokens. It is neither trained nor saved.
  Tensor bias_of_padding(int64_t tokens, int64_t all) const {
    const int64_t rows = all / tp_->size(), own = std::clamp<int64_t>(tokens - tp_->rank() * rows, 0, rows);
    if (own == rows) return {};
    return rush::cat({rush::zeros({own}), rush::full({rows - own}, -1e30)});
  }

  const MeshModelOptions options_;
  const Group tp_;
  rush::nn::ColumnParallelLinear wte_{nullptr};
};
RUSH_MODULE(MeshHead);

void check(const GPTConfig& config, const DeviceMesh& mesh) {
  const int tp = mesh.size("tp");
  RUSH_CHECK_VALUE(config.n_head % tp == 0, "a width of ", config.n_embd, " and ", config.n_head,
                   " heads cannot be split among ", tp, " processes of tp");
  RUSH_CHECK_NOT_IMPLEMENTED(config.dropout == 0, "there is no dropout of ", config.dropout, " on a mesh");
}

}  // namespace

rush::nn::Sequential make_mesh_gpt(const GPT& whole, const DeviceMesh& mesh, const MeshModelOptions& options) {
  const rush::NoGradGuard no_grad;
  check(whole->config(), mesh);
  const Source source(whole, mesh, options);
  rush::nn::Sequential net;
  net->push_back("embedding", MeshEmbedding(source));
  for (int64_t i = 0; i < source.config.n_layer; ++i) {
    net->push_back(rush::str("block", i), MeshBlock(source, rush::str("h.", i)));
  }
  net->push_back("head", MeshHead(source));
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
      add_norm(block->ln_1);
      add_norm(block->ln_2);
      found.push_back(block->attn->c_proj->bias);
      found.push_back(block->mlp->c_proj->bias);
    } else if (const auto* head = module->as<MeshHeadImpl>()) {
      add_norm(head->ln_f);
    }
  }
  return found;
}

std::string name_in_gpt(const std::string& name) {
  constexpr std::string_view kBlock = "block";
  if (name.starts_with(kBlock)) return "h." + name.substr(kBlock.size());
  return name.substr(name.find('.') + 1);
}

// (3C, ...) -> (3C, ...)
Tensor rows_by_head(const Tensor& rows, int64_t heads) {
  return rows.unflatten(0, {3, heads, -1}).transpose(0, 1).flatten(0, 2);
}

Tensor rows_by_kind(const Tensor& rows, int64_t heads) {
  return rows.unflatten(0, {heads, 3, -1}).transpose(0, 1).flatten(0, 2);
}

int64_t padded_rows(int64_t rows) {
  constexpr int64_t kMultiple = 64;
  return (rows + kMultiple - 1) / kMultiple * kMultiple;
}

}  // namespace examples
