// The operators that compute attention without holding its weights, and their kernels. See Note [Back ends of
// attention] in core/ops/nn/attention.h.
#pragma once
#include <array>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/philox.h"

namespace rush {

namespace ops {
/// All take query (B, H, L, E), key (B, K, S, E) and value (B, K, S, V), where K divides H (K = H on the CPU): so many
/// neighbouring heads of the queries share one of the others. `attn_bias` or `attn_mask`, which expands to (B, H, L,
/// S), is added when it is floating point, and keeps where it is true when it is bool. logsumexp (B, H, L) is that of
/// each row of scores, in float32, or float64 where the query is.
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, double, bool,
                                               const std::optional<Tensor>&, std::optional<double>)>
    _scaled_dot_product_flash_attention_for_cpu{
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
        "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                       const Tensor&, const Tensor&, double, bool,
                                                       const std::optional<Tensor>&, std::optional<double>)>
    _scaled_dot_product_flash_attention_for_cpu_backward{
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor "
        "value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? "
        "scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"};

/// By our own kernel on CUDA. logsumexp is undefined unless `compute_log_sumexp`, which the gradient needs; seed and
/// offset, int64 numbers on the device, name what was dropped, and are undefined unless `dropout_p` > 0. A seed drops
/// what it drops of the weights in ops::dropout.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                               const std::optional<Tensor>&, bool, double, bool,
                                                               std::optional<double>)>
    _scaled_dot_product_efficient_attention{
        "aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
        "compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor "
        "log_sumexp, Tensor philox_seed, Tensor philox_offset)"};
/// `attn_bias`, `philox_seed` and `philox_offset` may be undefined. Gradients that are not asked for are undefined;
/// there is none by attn_bias, which throws NotImplementedError.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
    const Tensor&, const Tensor&, double, std::array<bool, 4>, bool, std::optional<double>)>
    _scaled_dot_product_efficient_attention_backward{
        "aten::_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor "
        "value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float "
        "dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, "
        "Tensor)",
        {Tag::TakesUndefined}};

/// By cuDNN on CUDA, as above. cum_seq_q, cum_seq_k and debug_attn_mask are always undefined; max_q and max_k are L and
/// S. Throws NotImplementedError for what cuDNN does not compute, and with `return_debug_mask`.
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, bool, double, bool, bool,
    std::optional<double>)>
    _scaled_dot_product_cudnn_attention{
        "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
        "compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? "
        "scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt "
        "max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, double, bool, std::optional<double>)>
    _scaled_dot_product_cudnn_attention_backward{
        "aten::_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
        "Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor attn_bias, Tensor cum_seq_q, "
        "Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> "
        "(Tensor, Tensor, Tensor)",
        {Tag::TakesUndefined}};
}  // namespace ops

/// What a kernel computes: dropout(softmax(scale query key^T + bias)) value. Tensors have any strides; undefined where
/// there is nothing.
struct AttentionProblem {
  Tensor query, key, value;  // (B, H, L, E), (B, K, S, E), (B, K, S, V)
  Tensor bias;               // (B, H, L, S), the query's dtype
  bool is_causal = false;    // query i sees keys 0 to i
  double scale = 1;
  double dropout_p = 0;  // of the weights are dropped, the others divided by 1 - dropout_p
  Tensor seed, offset;   // int64 numbers on the device: where in the stream of random numbers

  template <class F>
  void each_tensor(const F& f) {
    for (Tensor* t : {&query, &key, &value, &bias, &seed, &offset}) f(*t);
  }
};

namespace kernels {
// out (B, H, L, V); logsumexp (B, H, L) row-major, or undefined. A row that sees no key becomes zero.
using AttentionForward = Kernel<void(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& problem)>;
// grads: of query, key and value, where defined, for the gradient `grad` of out.
using AttentionBackward = Kernel<void(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                                      const Tensor& logsumexp, const AttentionProblem& problem)>;
// why: what the kernel lacks to compute the problem, and its gradient where `with_gradient`; null when nothing.
using AttentionRefusal = Kernel<void(const char*& why, const AttentionProblem& problem, bool with_gradient)>;

inline constinit AttentionForward flash_attention_for_cpu{"_scaled_dot_product_flash_attention_for_cpu"},
    efficient_attention{"_scaled_dot_product_efficient_attention"},
    cudnn_attention{"_scaled_dot_product_cudnn_attention"};
inline constinit AttentionBackward flash_attention_for_cpu_backward{
    "_scaled_dot_product_flash_attention_for_cpu_backward"},
    efficient_attention_backward{"_scaled_dot_product_efficient_attention_backward"},
    cudnn_attention_backward{"_scaled_dot_product_cudnn_attention_backward"};
inline constinit AttentionRefusal efficient_attention_refusal{"_scaled_dot_product_efficient_attention"},
    cudnn_attention_refusal{"_scaled_dot_product_cudnn_attention"};
// The seed and the offset of `state` as numbers on the device. They are known there alone while a graph is captured.
inline constinit Kernel<void(const Tensor& seed, const Tensor& offset, const PhiloxState& state)> store_philox{
    "store_philox"};
}  // namespace kernels

namespace native {
// Note [Gradients of a packed projection]
// Query, key and value are often views of one product (B, L, 3 H E), which split made. The gradient of the product has
// their gradients in the same order; concatenating them would read and write each once more. The backward kernels
// therefore write the three gradients into views of one tensor. The derivative of split sees that its gradients are
// contiguous with each other, and returns that tensor.

// Whether query, key and value (B, H, L, E) are, in this order, the views of rows of 3 H E numbers.
bool are_packed(const AttentionProblem& problem);
// Throws unless the tensors can be those of an attention of any shape: what all its operators ask.
void check_attention(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                     const std::optional<Tensor>& mask, double dropout_p, bool is_causal);
// `scale`, or 1 / sqrt(E).
double attention_scale(const Tensor& query, std::optional<double> scale);
// A bool mask as numbers to add to scores: 0 where it is true, else -inf. Any other is returned as it is.
Tensor mask_as_numbers(const Tensor& mask, const Tensor& query);
// The problem of tensors (B, H, L, E), (B, K, S, E), (B, K, S, V) without seed and offset. Throws for other shapes.
AttentionProblem attention_problem(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                                   const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                                   std::optional<double> scale);
}  // namespace native

}  // namespace rush
