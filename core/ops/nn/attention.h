// Attention, and which back end computes it.
#pragma once
#include <array>
#include <string>

#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                           std::optional<double>, bool)>
    scaled_dot_product_attention{
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"};
/// An SDPBackend as a number.
inline constinit Op<int64_t(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                            std::optional<double>, bool)>
    _fused_sdp_choice{
        "aten::_fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
        "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> int"};
}  // namespace ops

/// softmax(scale query key^T + mask) value: query (..., H, L, E), key (..., H, S, E), value (..., H, S, V) -> (..., H,
/// L, V), leading dimensions broadcasting. `attn_mask`, broadcastable to (..., H, L, S), is added when floating point,
/// and keeps the positions where it is true when bool; a row without any gives zeros. With `is_causal`, position i sees
/// keys 0 to i. `scale` defaults to 1 / sqrt(E). `dropout_p` of the weights are dropped, in every call: pass 0 in
/// evaluation. With `enable_gqa`, key and value may have fewer heads (dimension -3), each shared by as many query heads
/// as divide. Throws ValueError and TypeError, and NotImplementedError where the back ends that are switched on refuse.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
inline Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const std::optional<Tensor>& attn_mask = std::nullopt,
                                           double dropout_p = 0.0, bool is_causal = false,
                                           std::optional<double> scale = std::nullopt, bool enable_gqa = false) {
  return ops::scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
}

// Note [Back ends of attention]
// A call takes the first of these that is switched on (globalContext().setSDPUse...) and does not refuse it:
//   on CUDA    cudnn_attention       cuDNN's fused attention, for 16-bit tensors: flash attention on tensor cores
//              efficient_attention   our own tiled kernels, for float32 tensors and what cuDNN refuses
//              math                  operators, one after the other
//   elsewhere  flash_attention       our own tiled kernel
//              math
// Only math holds the (L, S) weights. Double precision on CUDA, complex numbers, gradients by the mask, and dropout on
// the CPU are math's. A seed drops the same weights in efficient_attention as in math; cuDNN draws by a scheme of its
// own. All fused ones keep the gradient's memory linear in L and S, too. They can be differentiated twice, which takes
// the operators of math; with dropout, that throws NotImplementedError.
//
// at::SDPBackend, with its numbers. error: no back end computes the call.
enum class SDPBackend : int64_t {
  error = -1,
  math = 0,
  flash_attention = 1,
  efficient_attention = 2,
  cudnn_attention = 3
};

/// The back end that scaled_dot_product_attention would run, of the same arguments. torch._fused_sdp_choice.
inline SDPBackend fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const std::optional<Tensor>& attn_mask = std::nullopt, double dropout_p = 0.0,
                                   bool is_causal = false, std::optional<double> scale = std::nullopt,
                                   bool enable_gqa = false) {
  return static_cast<SDPBackend>(
      ops::_fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa));
}
/// Why the others would not run it, in one line: "cudnn_attention: computes in float16 and bfloat16 only; ...". Empty
/// where none refuses.
std::string sdp_refusals(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& attn_mask = std::nullopt, double dropout_p = 0.0,
                         bool is_causal = false, std::optional<double> scale = std::nullopt, bool enable_gqa = false);

/// Switches all back ends but `enabled` off, for all threads, while it lives. torch.nn.attention.sdpa_kernel.
class SDPBackendGuard {
 public:
  explicit SDPBackendGuard(std::initializer_list<SDPBackend> enabled);
  ~SDPBackendGuard();
  SDPBackendGuard(const SDPBackendGuard&) = delete;
  SDPBackendGuard& operator=(const SDPBackendGuard&) = delete;

 private:
  std::array<bool, 4> before_;  // whether each back end was enabled
};

namespace native {
// Of operators that have derivatives: softmax(scale query key^T + mask), zeros in rows that see no key.
Tensor attention_weights(const Tensor& query, const Tensor& key, const std::optional<Tensor>& mask, bool is_causal,
                         double scale);
}  // namespace native

}  // namespace rush
