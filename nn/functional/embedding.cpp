#include "nn/functional/embedding.h"

#include "autograd/grad_mode.h"
#include "core/ops/binary.h"
#include "core/ops/embedding.h"
#include "core/ops/factories.h"
#include "core/ops/gather.h"
#include "core/ops/ternary.h"

namespace rush::nn::functional {

namespace {

// Scales the rows that are looked up down to a norm of max_norm, in place and unrecorded.
void limit_norms(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  const NoGradGuard no_grad;
  const Tensor rows_used = indices.reshape(-1).to(kInt64);
  const Tensor rows = weight.index_select(0, rows_used);             // (n, D)
  const Tensor norms = rows.norm(norm_type, {1}, /*keepdim=*/true);  // (n, 1)
  const Tensor scale = where(norms.gt(max_norm), max_norm / (norms + 1e-7), ones_like(norms));
  Tensor target = weight;
  // A row that occurs twice is written twice with the same numbers.
  target.index_copy_(0, rows_used, rows * scale);
}

}  // namespace

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

Tensor one_hot(const Tensor& tensor, int64_t num_classes) { return rush::one_hot(tensor, num_classes); }

}  // namespace rush::nn::functional
