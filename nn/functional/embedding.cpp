#include "nn/functional/embedding.h"

#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/index/embedding.h"
#include "core/ops/index/embedding_bag.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

// Scales the rows that are looked up down to a norm of max_norm, in place and unrecorded.
static void limit_norms(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  const NoGradGuard no_grad;
  const Tensor rows_used = indices.reshape(-1).to(kInt64);
  const Tensor rows = weight.index_select(0, rows_used);             // (n, D)
  const Tensor norms = rows.norm(norm_type, {1}, /*keepdim=*/true);  // (n, 1)
  const Tensor scale = where(norms.gt(max_norm), max_norm / (norms + 1e-7), ones_like(norms));
  Tensor target = weight;
  // A row that occurs twice is written twice with the same numbers.
  target.index_copy_(0, rows_used, rows * scale);
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  int64_t padding_idx = o.padding_idx().value_or(-1);
  if (o.padding_idx()) {
    RUSH_CHECK_VALUE(padding_idx >= -weight.size(0) && padding_idx < weight.size(0), "embedding: padding_idx ",
                     padding_idx, " is outside ", weight.size(0), " rows");
    if (padding_idx < 0) padding_idx += weight.size(0);
  }
  if (o.max_norm()) limit_norms(weight, input, *o.max_norm(), o.norm_type());
  return rush::embedding(weight, input, padding_idx, o.scale_grad_by_freq(), o.sparse());
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() == 1 || input.dim() == 2,
                   "embedding_bag: expected indices of 1 or 2 dimensions, got shape ", input.sizes());
  RUSH_CHECK_VALUE(o.offsets().defined() == (input.dim() == 1),
                   "embedding_bag: indices of 1 dimension need offsets, and those of 2 take none");
  const Tensor& factors = o.per_sample_weights();
  RUSH_CHECK_VALUE(!factors.defined() || factors.sizes() == input.sizes(),
                   "embedding_bag: expected per_sample_weights of the indices' shape ", input.sizes(), ", got ",
                   factors.defined() ? str(factors.sizes()) : "none");
  RUSH_CHECK_VALUE(!factors.defined() || enumtype::holds<enumtype::kSum>(o.mode()),
                   "embedding_bag: per_sample_weights are for mode kSum only");
  Tensor offsets = o.offsets();
  if (!offsets.defined()) {
    const int64_t size = input.size(1);
    offsets = size > 0 ? arange(0, input.numel(), size, input.options()) : zeros(input.size(0), input.options());
  }
  if (o.max_norm()) limit_norms(weight, input, *o.max_norm(), o.norm_type());
  const int64_t mode = static_cast<int64_t>(o.mode().index());  // sum, mean, max: 0, 1, 2 as in ATen
  const bool last = input.dim() == 1 && o.include_last_offset();
  const Tensor flat = factors.defined() ? factors.reshape(-1) : factors;
  return std::get<0>(rush::embedding_bag(weight, input.reshape(-1), offsets, o.scale_grad_by_freq(), mode, o.sparse(),
                                         optional_tensor(flat), last, o.padding_idx()));
}

Tensor one_hot(const Tensor& tensor, int64_t num_classes) { return rush::one_hot(tensor, num_classes); }

}  // namespace rush::nn::functional
