#include "examples/gpt2/weights.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"
#include "rushlight.h"

namespace examples {

namespace {

using rush::Tensor;
using rush::io::SafetensorsFile;
using Sizes = std::vector<int64_t>;

constexpr std::string_view kPrefix = "transformer.";

// Whether the file holds the transpose.
bool is_stored_transposed(std::string_view name) {
  return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") || name.ends_with("c_fc.weight");
}

// Tensors that are no parameters of the model.
bool is_left_out(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// The sizes that a parameter has in the file.
Sizes stored_sizes(const std::string& name, const Tensor& parameter, const GPTConfig& config) {
  Sizes sizes(parameter.sizes().begin(), parameter.sizes().end());
  if (is_stored_transposed(name)) std::swap(sizes[0], sizes[1]);
  if (name == "wte.weight") sizes[0] = config.vocab_size;
  return sizes;
}

// The part of a parameter that is stored.
Tensor stored_view(const std::string& name, const Tensor& parameter, const GPTConfig& config) {
  const Tensor values = parameter.detach();
  if (name == "wte.weight") return values.narrow(0, 0, config.vocab_size);
  return is_stored_transposed(name) ? values.t() : values;
}

const SafetensorsFile::Entry* find(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsFile::Entry* entry = file.find(name);
  return entry ? entry : file.find(std::string(kPrefix) + name);
}

const SafetensorsFile::Entry& find_matrix(const SafetensorsFile& file, const std::string& path, const char* name) {
  const SafetensorsFile::Entry* entry = find(file, name);
  RUSH_CHECK_VALUE(entry && entry->shape.size() == 2, path, ": no weights of a GPT-2: there is no matrix ", name);
  return *entry;
}

// The entry of each parameter, in the order of the parameters.
std::vector<const SafetensorsFile::Entry*> match(const SafetensorsFile& file, const std::string& path,
                                                 const GPTImpl& model) {
  std::set<const SafetensorsFile::Entry*> left;
  for (const SafetensorsFile::Entry& entry : file.entries()) left.insert(&entry);
  std::vector<const SafetensorsFile::Entry*> matched;
  for (const auto& parameter : model.named_parameters()) {
    const SafetensorsFile::Entry* entry = find(file, parameter.key());
    RUSH_CHECK_VALUE(entry, path, ": there is no tensor ", parameter.key());
    const Sizes expected = stored_sizes(parameter.key(), *parameter, model.config());
    RUSH_CHECK_VALUE(entry->shape == expected, path, ": tensor ", entry->name, " has shape ", entry->shape,
                     ", the model's has ", expected);
    RUSH_CHECK_VALUE(rush::is_floating_point(entry->dtype), path, ": tensor ", entry->name, " has dtype ",
                     entry->dtype);
    matched.push_back(entry);
    left.erase(entry);
  }
  for (const SafetensorsFile::Entry* entry : left) {
    RUSH_CHECK_VALUE(is_left_out(entry->name), path, ": tensor ", entry->name, " is none of the model's");
  }
  return matched;
}

}  // namespace

GPTConfig read_gpt2_config(const std::string& path, GPTConfig given) {
  const SafetensorsFile file(path);
  const SafetensorsFile::Entry &wte = find_matrix(file, path, "wte.weight"),
                               &wpe = find_matrix(file, path, "wpe.weight");
  given.vocab_size = wte.shape[0];
  given.n_embd = wte.shape[1];
  given.block_size = wpe.shape[0];
  given.n_layer = 0;
  while (find(file, rush::str("h.", given.n_layer, ".ln_1.weight"))) ++given.n_layer;
  return given;
}

void load_gpt2_weights(GPTImpl& model, const std::string& path) {
  const rush::NoGradGuard no_grad;
  const SafetensorsFile file(path);
  const auto entries = match(file, path, model);
  std::vector<Tensor> values;
  for (const SafetensorsFile::Entry* entry : entries) values.push_back(file.read(*entry));
  size_t i = 0;
  for (const auto& parameter : model.named_parameters()) {
    stored_view(parameter.key(), *parameter, model.config()).copy_(values[i++]);
  }
}

void save_gpt2_weights(const GPTImpl& model, const std::string& folder) {
  rush::io::NamedTensors weights;
  for (const auto& parameter : model.named_parameters()) {
    weights.emplace_back(parameter.key(), stored_view(parameter.key(), *parameter, model.config()).cpu().contiguous());
  }
  const GPTConfig& c = model.config();
  const nlohmann::json config = {{"architectures", {"GPT2LMHeadModel"}},
                                 {"model_type", "gpt2"},
                                 {"vocab_size", c.vocab_size},
                                 {"n_positions", c.block_size},
                                 {"n_layer", c.n_layer},
                                 {"n_head", c.n_head},
                                 {"n_embd", c.n_embd},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", 1e-5},
                                 {"resid_pdrop", c.dropout},
                                 {"embd_pdrop", c.dropout},
                                 {"attn_pdrop", c.dropout},
                                 {"bos_token_id", c.vocab_size - 1},
                                 {"eos_token_id", c.vocab_size - 1},
                                 {"tie_word_embeddings", true}};
  rush::io::save_safetensors(folder + "/model.safetensors", weights, {{"format", "pt"}});
  rush::io::write_file_atomically(folder + "/config.json", config.dump(2) + "\n");
}

}  // namespace examples
