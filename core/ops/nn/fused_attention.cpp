#include "core/ops/nn/fused_attention.h"

#include <cmath>
#include <limits>

#include "core/device/generator.h"
#include "core/ops/basic.h"
#include "core/ops/random/random.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

void check_attention(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                     const std::optional<Tensor>& mask, double dropout_p, bool is_causal) {
  RUSH_CHECK_VALUE(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, op,
                   ": expected at least 2 dimensions, got shapes ", query.sizes(), ", ", key.sizes(), " and ",
                   value.sizes());
  RUSH_CHECK_TYPE(query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(), op,
                  ": dtypes differ: ", query.scalar_type(), ", ", key.scalar_type(), " and ", value.scalar_type());
  RUSH_CHECK_VALUE(
      query.device() == key.device() && query.device() == value.device() && (!mask || mask->device() == query.device()),
      op, ": query, key, value and mask must be on one device");
  RUSH_CHECK_VALUE(query.size(-1) == key.size(-1), op, ": queries of ", query.size(-1), " numbers do not fit keys of ",
                   key.size(-1), ", shapes ", query.sizes(), " and ", key.sizes());
  RUSH_CHECK_VALUE(key.size(-2) == value.size(-2), op, ": ", key.size(-2), " keys do not fit ", value.size(-2),
                   " values, shapes ", key.sizes(), " and ", value.sizes());
  RUSH_CHECK_VALUE(!(mask && is_causal), op, ": is_causal makes its own mask, so attn_mask must be left out");
  RUSH_CHECK_TYPE(!mask || mask->scalar_type() == kBool || mask->scalar_type() == query.scalar_type(), op,
                  ": attn_mask must be bool or ", query.scalar_type(), ", as the query is, got ",
                  mask ? mask->scalar_type() : kBool);
  RUSH_CHECK_VALUE(dropout_p >= 0 && dropout_p < 1, op, ": dropout probability has to be between 0 and 1, but got ",
                   dropout_p, " where it must be in [0, 1)");
}

double attention_scale(const Tensor& query, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
}

Tensor mask_as_numbers(const Tensor& mask, const Tensor& query) {
  if (mask.scalar_type() != kBool) return mask;
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  return zeros(mask.sizes(), query.options()).masked_fill(mask.logical_not(), hidden);
}

namespace {

// The mask as numbers to add, expanded to (B, H, L, S).
Tensor additive_mask(const char* op, const Tensor& mask, const Tensor& query, const Tensor& key) {
  const DimVector sizes = {query.size(0), query.size(1), query.size(2), key.size(2)};
  RUSH_CHECK_VALUE(broadcast_shapes(mask.sizes(), sizes, op) == sizes, op, ": a mask of shape ", mask.sizes(),
                   " does not expand to ", sizes);
  return expand_as_strided(mask_as_numbers(mask, query), sizes);
}

}  // namespace

AttentionProblem attention_problem(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                                   const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                                   std::optional<double> scale) {
  const std::optional<Tensor> given = mask && mask->defined() ? mask : std::nullopt;
  check_attention(op, query, key, value, given, dropout_p, is_causal);
  RUSH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == key.size(0) &&
                       query.size(0) == value.size(0) && key.size(1) == value.size(1) &&
                       (query.size(1) == key.size(1) || (key.size(1) > 0 && query.size(1) % key.size(1) == 0)),
                   op, ": expected (B, H, L, E), (B, K, S, E) and (B, K, S, V) with K dividing H, got shapes ",
                   query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  AttentionProblem problem;
  problem.query = query;
  problem.key = key;
  problem.value = value;
  if (given) problem.bias = additive_mask(op, *given, query, key);
  problem.is_causal = is_causal;
  problem.scale = attention_scale(query, scale);
  problem.dropout_p = dropout_p;
  return problem;
}

bool are_packed(const AttentionProblem& p) {
  const Tensor& query = p.query;
  const int64_t heads = query.size(1), length = query.size(2), width = query.size(3), row = 3 * heads * width;
  const int64_t strides[] = {length * row, width, row, 1};
  int64_t at = query.storage_offset();
  for (const Tensor* part : {&p.query, &p.key, &p.value}) {
    if (part->sizes() != query.sizes() || !part->is_alias_of(query) || part->storage_offset() != at) return false;
    for (size_t d = 0; d < 4; ++d) {
      if (part->sizes()[d] != 1 && part->strides()[d] != strides[d]) return false;
    }
    at += heads * width;
  }
  return query.numel() > 0;
}

namespace {

// (B, H, L, V) that lies in memory as (B, L, H, V): the heads of a position side by side, as they are joined next.
Tensor heads_inside(const Tensor& like, int64_t length, int64_t width) {
  const int64_t heads = like.size(1);
  return detail::empty_strided({like.size(0), heads, length, width}, {length * heads * width, width, heads * width, 1},
                               like.scalar_type(), like.device());
}

// Tensors (B, H, L, E) that are the parts of one (B, L, 3, H, E).
std::array<Tensor, 3> packed_gradients(const Tensor& query) {
  const int64_t heads = query.size(1), length = query.size(2), width = query.size(3), row = 3 * heads * width;
  const Tensor all = detail::empty_contiguous({query.size(0), length, row}, query.scalar_type(), query.device());
  const auto part = [&](int64_t i) {
    return detail::make_view(all, query.sizes(), {length * row, width, row, 1}, i * heads * width);
  };
  return {part(0), part(1), part(2)};
}

struct AttentionResult {
  Tensor out, logsumexp;
};

AttentionResult run_attention(const kernels::AttentionForward& kernel, const AttentionProblem& p, bool with_logsumexp) {
  const Tensor& query = p.query;
  AttentionResult result;
  result.out = heads_inside(query, query.size(2), p.value.size(3));
  if (with_logsumexp) {
    const ScalarType dtype = query.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
    result.logsumexp = detail::empty_contiguous({query.size(0), query.size(1), query.size(2)}, dtype, query.device());
  }
  kernel(query.device().type, result.out, result.logsumexp, p);
  return result;
}

std::array<Tensor, 3> run_attention_backward(const char* op, const kernels::AttentionBackward& kernel,
                                             const AttentionProblem& p, const Tensor& grad, const Tensor& out,
                                             const Tensor& logsumexp, std::array<bool, 3> wanted) {
  const DimVector rows = {p.query.size(0), p.query.size(1), p.query.size(2)};
  RUSH_CHECK_VALUE(out.dim() == 4 && out.sizes().slice(0, 3) == IntArrayRef(rows) && out.size(3) == p.value.size(3), op,
                   ": the output has shape ", out.sizes(), ", which does not fit queries ", p.query.sizes(),
                   " and values ", p.value.sizes());
  RUSH_CHECK_VALUE(grad.sizes() == out.sizes(), op, ": the gradient has shape ", grad.sizes(), ", the output ",
                   out.sizes());
  RUSH_CHECK_TYPE(grad.scalar_type() == p.query.scalar_type() && out.scalar_type() == p.query.scalar_type(), op,
                  ": the gradient is ", grad.scalar_type(), " and the output ", out.scalar_type(), ", the query ",
                  p.query.scalar_type());
  RUSH_CHECK_VALUE(logsumexp.defined() && logsumexp.sizes() == IntArrayRef(rows), op,
                   ": logsumexp is not that of these queries: was compute_log_sumexp false in the forward pass?");
  RUSH_CHECK_VALUE(p.dropout_p == 0 || (p.seed.defined() && p.offset.defined()), op,
                   ": dropout needs the seed and the offset of the forward pass");
  std::array<Tensor, 3> grads;
  const Tensor* inputs[] = {&p.query, &p.key, &p.value};
  const bool all = wanted[0] && wanted[1] && wanted[2];
  if (all && are_packed(p)) grads = packed_gradients(p.query);
  for (size_t i = 0; i < 3; ++i) {
    if (wanted[i] && !grads[i].defined()) grads[i] = heads_inside(*inputs[i], inputs[i]->size(2), inputs[i]->size(3));
  }
  kernel(p.query.device().type, grads, grad, out, contiguous(logsumexp), p);
  return grads;
}

// The problem's dropout draws from `state`.
void reserve_dropout(AttentionProblem& p, const PhiloxState& state) {
  const Device device = p.query.device();
  p.seed = detail::empty_contiguous(IntArrayRef(), kInt64, device);
  p.offset = detail::empty_contiguous(IntArrayRef(), kInt64, device);
  kernels::store_philox(device.type, p.seed, p.offset, state);
}

// ---- flash_attention_for_cpu ----

AttentionProblem problem_for_cpu(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                                 const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                                 std::optional<double> scale) {
  AttentionProblem p = attention_problem(op, query, key, value, mask, dropout_p, is_causal, scale);
  RUSH_CHECK_VALUE(query.size(1) == key.size(1), op, ": ", query.size(1), " heads of queries cannot share ",
                   key.size(1));
  RUSH_CHECK_NOT_IMPLEMENTED(dropout_p == 0, op, ": dropout is not implemented");
  return p;
}

std::tuple<Tensor, Tensor> flash_attention_for_cpu(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   double dropout_p, bool is_causal, const std::optional<Tensor>& mask,
                                                   std::optional<double> scale) {
  const auto& kernel = kernels::flash_attention_for_cpu;
  const auto [out, logsumexp] =
      run_attention(kernel, problem_for_cpu(kernel.name(), query, key, value, mask, dropout_p, is_causal, scale), true);
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_for_cpu_backward(const Tensor& grad, const Tensor& query,
                                                                    const Tensor& key, const Tensor& value,
                                                                    const Tensor& out, const Tensor& logsumexp,
                                                                    double dropout_p, bool is_causal,
                                                                    const std::optional<Tensor>& mask,
                                                                    std::optional<double> scale) {
  const auto& kernel = kernels::flash_attention_for_cpu_backward;
  const auto p = problem_for_cpu(kernel.name(), query, key, value, mask, dropout_p, is_causal, scale);
  const auto [dq, dk, dv] = run_attention_backward(kernel.name(), kernel, p, grad, out, logsumexp, {true, true, true});
  return {dq, dk, dv};
}

// ---- efficient_attention ----

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention(const Tensor& query, const Tensor& key,
                                                               const Tensor& value, const std::optional<Tensor>& bias,
                                                               bool compute_log_sumexp, double dropout_p,
                                                               bool is_causal, std::optional<double> scale) {
  const auto& kernel = kernels::efficient_attention;
  AttentionProblem p = attention_problem(kernel.name(), query, key, value, bias, dropout_p, is_causal, scale);
  const Device device = query.device();
  if (dropout_p > 0 && !device.is_meta()) reserve_dropout(p, reserve_words({}, device, kernel.name()));
  const auto [out, logsumexp] = run_attention(kernel, p, compute_log_sumexp);
  return {out, logsumexp, p.seed, p.offset};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
    const Tensor& out, const Tensor& logsumexp, const Tensor& seed, const Tensor& offset, double dropout_p,
    std::array<bool, 4> wanted, bool is_causal, std::optional<double> scale) {
  const auto& kernel = kernels::efficient_attention_backward;
  RUSH_CHECK_NOT_IMPLEMENTED(!wanted[3], kernel.name(), ": there is no gradient by attn_bias");
  AttentionProblem p = attention_problem(kernel.name(), query, key, value, bias, dropout_p, is_causal, scale);
  p.seed = seed;
  p.offset = offset;
  const auto [dq, dk, dv] =
      run_attention_backward(kernel.name(), kernel, p, grad, out, logsumexp, {wanted[0], wanted[1], wanted[2]});
  return {dq, dk, dv, Tensor()};
}

// ---- cudnn_attention ----

// How far the stream is advanced: cuDNN does not say how it counts, but it draws no more than a word for each weight.
uint64_t words_of_weights(const AttentionProblem& p) {
  uint64_t words = 1;
  for (const int64_t n : {p.query.size(0), p.query.size(1), p.query.size(2), p.key.size(2)}) {
    words *= static_cast<uint64_t>(n);
  }
  return words;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor> cudnn_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& bias,
    bool compute_log_sumexp, double dropout_p, bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  const auto& kernel = kernels::cudnn_attention;
  RUSH_CHECK_NOT_IMPLEMENTED(!return_debug_mask, kernel.name(), ": return_debug_mask is not implemented");
  AttentionProblem p = attention_problem(kernel.name(), query, key, value, bias, dropout_p, is_causal, scale);
  const Device device = query.device();
  if (dropout_p > 0 && !device.is_meta()) {
    reserve_dropout(p, default_generator(device).reserve(words_of_weights(p)));
  }
  const auto [out, logsumexp] = run_attention(kernel, p, compute_log_sumexp);
  return {out, logsumexp, Tensor(), Tensor(), query.size(2), key.size(2), p.seed, p.offset, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                            const Tensor& value, const Tensor& out,
                                                            const Tensor& logsumexp, const Tensor& seed,
                                                            const Tensor& offset, const Tensor& bias, const Tensor&,
                                                            const Tensor&, int64_t, int64_t, double dropout_p,
                                                            bool is_causal, std::optional<double> scale) {
  const auto& kernel = kernels::cudnn_attention_backward;
  AttentionProblem p = attention_problem(kernel.name(), query, key, value, bias, dropout_p, is_causal, scale);
  p.seed = seed;
  p.offset = offset;
  const auto [dq, dk, dv] = run_attention_backward(kernel.name(), kernel, p, grad, out, logsumexp, {true, true, true});
  return {dq, dk, dv};
}

}  // namespace
}  // namespace native

void register_fused_attention_ops(Registry& r) {
  r.native(ops::_scaled_dot_product_flash_attention_for_cpu, native::flash_attention_for_cpu);
  r.native(ops::_scaled_dot_product_flash_attention_for_cpu_backward, native::flash_attention_for_cpu_backward);
  r.native(ops::_scaled_dot_product_efficient_attention, native::efficient_attention);
  r.native(ops::_scaled_dot_product_efficient_attention_backward, native::efficient_attention_backward);
  r.native(ops::_scaled_dot_product_cudnn_attention, native::cudnn_attention);
  r.native(ops::_scaled_dot_product_cudnn_attention_backward, native::cudnn_attention_backward);
}

}  // namespace rush
