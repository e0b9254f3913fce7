#include "core/ops/attention.h"

#include <cmath>
#include <limits>

#include "core/dispatch/registry.h"
#include "core/ops/binary.h"
#include "core/ops/bitwise.h"
#include "core/ops/compare.h"
#include "core/ops/factories.h"
#include "core/ops/masked.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/register.h"
#include "core/ops/softmax.h"
#include "core/ops/triangular.h"
#include "core/ops/view.h"

namespace rush {

namespace native {

namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                     double dropout_p, bool is_causal) {
  RUSH_CHECK_VALUE(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, kOp,
                   ": expected at least 2 dimensions, got shapes ", query.sizes(), ", ", key.sizes(), " and ",
                   value.sizes());
  RUSH_CHECK_TYPE(query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(), kOp,
                  ": dtypes differ: ", query.scalar_type(), ", ", key.scalar_type(), " and ", value.scalar_type());
  RUSH_CHECK_VALUE(query.size(-1) == key.size(-1), kOp, ": queries of ", query.size(-1),
                   " numbers do not fit keys of ", key.size(-1), ", shapes ", query.sizes(), " and ", key.sizes());
  RUSH_CHECK_VALUE(key.size(-2) == value.size(-2), kOp, ": ", key.size(-2), " keys do not fit ", value.size(-2),
                   " values, shapes ", key.sizes(), " and ", value.sizes());
  RUSH_CHECK_VALUE(!(mask && is_causal), kOp, ": is_causal makes its own mask, so attn_mask must be left out");
  RUSH_CHECK_TYPE(!mask || mask->scalar_type() == kBool || mask->scalar_type() == query.scalar_type(), kOp,
                  ": attn_mask must be bool or ", query.scalar_type(), ", as the query is, got ",
                  mask ? mask->scalar_type() : kBool);
  RUSH_CHECK_VALUE(dropout_p >= 0 && dropout_p < 1, kOp, ": dropout_p must be in [0, 1), got ", dropout_p);
}

// Heads h of (..., h, S, E) repeated so that there are `heads`: (..., heads, S, E), neighbours sharing one.
Tensor share_heads(const Tensor& t, int64_t heads) {
  const int64_t own = t.size(-3);
  if (own == heads) return t;
  RUSH_CHECK_VALUE(own > 0 && heads % own == 0, kOp, ": ", heads, " query heads cannot share ", own, " heads");
  DimVector sizes(t.sizes());
  sizes.insert(sizes.end() - 2, heads / own);
  DimVector joined(t.sizes());
  joined[joined.size() - 3] = heads;
  return t.unsqueeze(-3).expand(sizes).reshape(joined);
}

// Rows whose every score is -inf have no softmax: they are made 0 before it, and their weights after.
Tensor softmax_of_rows(const Tensor& scores, bool masked) {
  if (!masked) return scores.softmax(-1);
  const Tensor empty = scores.eq(-std::numeric_limits<double>::infinity()).all(-1, true);
  return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0);
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                 double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, mask, dropout_p, is_causal);
  const int64_t heads = enable_gqa ? query.size(-3) : 0;
  const Tensor k = enable_gqa ? share_heads(key, heads) : key, v = enable_gqa ? share_heads(value, heads) : value;
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = (query * factor).matmul(k.transpose(-2, -1));  // (..., L, S)
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  if (is_causal) {
    const Tensor later = ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device())).triu(1);
    scores = scores.masked_fill(later, hidden);
  } else if (mask) {
    scores = mask->scalar_type() == kBool ? scores.masked_fill(mask->logical_not(), hidden) : scores + *mask;
  }
  const Tensor weights = softmax_of_rows(scores, mask.has_value());
  RUSH_CHECK_NOT_IMPLEMENTED(dropout_p == 0, kOp, ": dropout of the weights is not implemented");
  return weights.matmul(v);
}

}  // namespace
}  // namespace native

void register_attention_ops(Registry& r) { r.composite(ops::scaled_dot_product_attention, native::attention); }

}  // namespace rush
