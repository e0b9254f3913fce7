#include "nn/modules/embedding.h"

#include <ostream>

#include "autograd/grad_mode.h"
#include "core/ops/factories.h"
#include "core/ops/view.h"
#include "nn/functional/embedding.h"
#include "nn/init.h"

namespace rush::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options(std::move(options)) { EmbeddingImpl::reset(); }

void EmbeddingImpl::reset() {
  auto& padding_idx = options.padding_idx();
  if (padding_idx) {
    const int64_t rows = options.num_embeddings();
    RUSH_CHECK_VALUE(*padding_idx >= -rows && *padding_idx < rows, "Embedding: padding_idx ", *padding_idx,
                     " is outside ", rows, " rows");
    if (*padding_idx < 0) padding_idx = *padding_idx + rows;
  }
  const std::vector<int64_t> sizes = {options.num_embeddings(), options.embedding_dim()};
  if (options._weight().defined()) {
    RUSH_CHECK_VALUE(options._weight().sizes() == IntArrayRef(sizes), "Embedding: expected a weight of shape ", sizes,
                     ", got ", options._weight().sizes());
    // Another handle on the same memory, so that a clone's is not this one's.
    weight = register_parameter("weight", options._weight().detach());
  } else {
    weight = register_parameter("weight", rush::empty(sizes));
    reset_parameters();
  }
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    const NoGradGuard no_grad;
    weight[*options.padding_idx()].fill_(0);
  }
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  std::string text =
      str("rush::nn::Embedding(num_embeddings=", options.num_embeddings(), ", embedding_dim=", options.embedding_dim());
  if (options.padding_idx()) text += str(", padding_idx=", *options.padding_idx());
  if (options.max_norm()) text += str(", max_norm=", *options.max_norm());
  if (options.norm_type() != 2) text += str(", norm_type=", options.norm_type());
  if (options.scale_grad_by_freq()) text += ", scale_grad_by_freq=true";
  if (options.sparse()) text += ", sparse=true";
  stream << text << ")";
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight,
                               functional::EmbeddingFuncOptions()
                                   .padding_idx(options.padding_idx())
                                   .max_norm(options.max_norm())
                                   .norm_type(options.norm_type())
                                   .scale_grad_by_freq(options.scale_grad_by_freq())
                                   .sparse(options.sparse()));
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o) {
  RUSH_CHECK_VALUE(embeddings.dim() == 2, "from_pretrained: expected a table of 2 dimensions, got shape ",
                   embeddings.sizes());
  Embedding embedding(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                          ._weight(embeddings)
                          .padding_idx(o.padding_idx())
                          .max_norm(o.max_norm())
                          .norm_type(o.norm_type())
                          .scale_grad_by_freq(o.scale_grad_by_freq())
                          .sparse(o.sparse()));
  embedding->weight.set_requires_grad(!o.freeze());
  return embedding;
}

}  // namespace rush::nn
