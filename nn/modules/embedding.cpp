#include "nn/modules/embedding.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/functional/embedding.h"
#include "nn/init.h"
#include "nn/module_text.h"

namespace rush::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options(std::move(options)) { EmbeddingImpl::reset(); }

namespace {

// A padding_idx that counts from the end is turned into one that does not; one outside the table is a ValueError.
template <class Options>
void resolve_padding(const char* name, Options& options) {
  auto& padding_idx = options.padding_idx();
  if (!padding_idx) return;
  const int64_t rows = options.num_embeddings();
  RUSH_CHECK_VALUE(*padding_idx >= -rows && *padding_idx < rows, name, ": padding_idx ", *padding_idx, " is outside ",
                   rows, " rows");
  if (*padding_idx < 0) padding_idx = *padding_idx + rows;
}

// The table that the options bring, or an empty one.
template <class Options>
Tensor table(const char* name, const Options& options) {
  const std::vector<int64_t> sizes = {options.num_embeddings(), options.embedding_dim()};
  if (!options._weight().defined()) return rush::empty(sizes);
  RUSH_CHECK_VALUE(options._weight().sizes() == IntArrayRef(sizes), name, ": expected a weight of shape ", sizes,
                   ", got ", options._weight().sizes());
  // Another handle on the same memory, so that a clone's is not this one's.
  return options._weight().detach();
}

template <class Options>
void reset_table(Tensor& weight, const Options& options) {
  init::normal_(weight);
  if (options.padding_idx()) {
    const NoGradGuard no_grad;
    weight[*options.padding_idx()].fill_(0);
  }
}

// What both modules say besides their sizes, where it is not the default.
template <class Options>
void add_row_options(detail::ModuleText& text, const Options& options) {
  if (options.max_norm()) text += detail::options_text(", max_norm=", *options.max_norm());
  if (options.norm_type() != 2) text += detail::options_text(", norm_type=", options.norm_type());
  if (options.scale_grad_by_freq()) text += detail::options_text(", scale_grad_by_freq=", true);
  if (options.sparse()) text += detail::options_text(", sparse=", true);
}

// The options of a module around a given table.
template <class Options, class FromPretrainedOptions>
Options options_for(const Tensor& embeddings, const FromPretrainedOptions& o) {
  RUSH_CHECK_VALUE(embeddings.dim() == 2, "from_pretrained: expected a table of 2 dimensions, got shape ",
                   embeddings.sizes());
  return Options(embeddings.size(0), embeddings.size(1))
      ._weight(embeddings)
      .padding_idx(o.padding_idx())
      .max_norm(o.max_norm())
      .norm_type(o.norm_type())
      .scale_grad_by_freq(o.scale_grad_by_freq())
      .sparse(o.sparse());
}

}  // namespace

void EmbeddingImpl::reset() {
  resolve_padding("Embedding", options);
  weight = register_parameter("weight", table("Embedding", options));
  if (!options._weight().defined()) reset_parameters();
}

void EmbeddingImpl::reset_parameters() { reset_table(weight, options); }

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  detail::ModuleText text = detail::module_text("Embedding(num_embeddings=", options.num_embeddings(),
                                                ", embedding_dim=", options.embedding_dim());
  if (options.padding_idx()) text += detail::options_text(", padding_idx=", *options.padding_idx());
  add_row_options(text, options);
  stream << text << ")";
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  const ModuleScope scope(*this);
  return functional::embedding(indices, weight,
                               functional::EmbeddingFuncOptions()
                                   .padding_idx(options.padding_idx())
                                   .max_norm(options.max_norm())
                                   .norm_type(options.norm_type())
                                   .scale_grad_by_freq(options.scale_grad_by_freq())
                                   .sparse(options.sparse()));
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o) {
  Embedding embedding(options_for<EmbeddingOptions>(embeddings, o));
  embedding->weight.set_requires_grad(!o.freeze());
  return embedding;
}

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions options) : options(std::move(options)) {
  EmbeddingBagImpl::reset();
}

void EmbeddingBagImpl::reset() {
  resolve_padding("EmbeddingBag", options);
  weight = register_parameter("weight", table("EmbeddingBag", options));
  if (!options._weight().defined()) reset_parameters();
}

void EmbeddingBagImpl::reset_parameters() { reset_table(weight, options); }

void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  detail::ModuleText text = detail::module_text("EmbeddingBag(num_embeddings=", options.num_embeddings(),
                                                ", embedding_dim=", options.embedding_dim());
  add_row_options(text, options);
  if (!enumtype::holds<enumtype::kMean>(options.mode())) text += ", mode=" + enumtype::get_enum_name(options.mode());
  if (options.include_last_offset()) text += detail::options_text(", include_last_offset=", true);
  if (options.padding_idx()) text += detail::options_text(", padding_idx=", *options.padding_idx());
  stream << text << ")";
}

Tensor EmbeddingBagImpl::forward(const Tensor& input, const std::optional<Tensor>& offsets,
                                 const std::optional<Tensor>& per_sample_weights) {
  const ModuleScope scope(*this);
  return functional::embedding_bag(input, weight,
                                   functional::EmbeddingBagFuncOptions()
                                       .offsets(offsets.value_or(Tensor()))
                                       .max_norm(options.max_norm())
                                       .norm_type(options.norm_type())
                                       .scale_grad_by_freq(options.scale_grad_by_freq())
                                       .mode(options.mode())
                                       .sparse(options.sparse())
                                       .per_sample_weights(per_sample_weights.value_or(Tensor()))
                                       .include_last_offset(options.include_last_offset())
                                       .padding_idx(options.padding_idx()));
}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings, const EmbeddingBagFromPretrainedOptions& o) {
  EmbeddingBag bag(
      options_for<EmbeddingBagOptions>(embeddings, o).mode(o.mode()).include_last_offset(o.include_last_offset()));
  bag->weight.set_requires_grad(!o.freeze());
  return bag;
}

}  // namespace rush::nn
