#include "core/ops/nn/attention.h"

#include <algorithm>
#include <limits>

#include "core/device/context.h"
#include "core/device/guard.h"
#include "core/ops/basic.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/nn/fused_attention.h"
#include "core/ops/nn/softmax.h"
#include "core/ops/register.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace native {

Tensor attention_weights(const Tensor& query, const Tensor& key, const std::optional<Tensor>& mask, bool is_causal,
                         double scale) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor scores = (query * scale).matmul(key.transpose(-2, -1));  // (..., L, S)
  if (is_causal) {
    const Tensor later = ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device())).triu(1);
    return scores.masked_fill(later, hidden).softmax(-1);
  }
  if (!mask) return scores.softmax(-1);
  scores = mask->scalar_type() == kBool ? scores.masked_fill(mask->logical_not(), hidden) : scores + *mask;
  // Rows whose every score is -inf have no softmax: they are made 0 before it, and their weights after.
  const Tensor empty = scores.eq(hidden).all(-1, true);
  return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0);
}

namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";

struct AttentionCall {
  const Tensor &query, &key, &value;
  const std::optional<Tensor>& mask;
  double dropout_p;
  bool is_causal;
  double scale;
  bool enable_gqa;

  // By kernels of the query's device, which the CPU does not have.
  bool by_device() const { return kernels::efficient_attention_refusal.has(query.device().type); }
  bool wants_gradient() const {
    return dispatch_state.grad_mode && (query.requires_grad() || key.requires_grad() || value.requires_grad());
  }
};

// Heads h of (..., h, S, E) repeated so that there are `heads`: (..., heads, S, E), neighbours sharing one.
Tensor share_heads(const Tensor& t, int64_t heads) {
  const int64_t own = t.size(-3);
  if (own == heads) return t;
  RUSH_CHECK_VALUE(own > 0 && heads % own == 0, kAttention, ": ", heads, " query heads cannot share ", own, " heads");
  DimVector sizes(t.sizes());
  sizes.insert(sizes.end() - 2, heads / own);
  DimVector joined(t.sizes());
  joined[joined.size() - 3] = heads;
  return t.unsqueeze(-3).expand(sizes).reshape(joined);
}

Tensor shared_as_asked(const AttentionCall& call, const Tensor& t) {
  return call.enable_gqa ? share_heads(t, call.query.size(-3)) : t;
}

Tensor attention_by_parts(const AttentionCall& c) {
  Tensor weights = attention_weights(c.query, shared_as_asked(c, c.key), c.mask, c.is_causal, c.scale);
  if (c.dropout_p > 0) weights = ops::dropout(weights, c.dropout_p, true);
  return weights.matmul(shared_as_asked(c, c.value));
}

// What comes before the last two dimensions.
IntArrayRef leading(const Tensor& t) {
  return t.sizes().slice(0, t.sizes().size() - std::min<size_t>(2, t.sizes().size()));
}

// A call as the fused operators take it: (B, H, L, E), (B, K, S, E), (B, K, S, V). Other leading dimensions are
// broadcast to `batch`, and become a batch of single heads.
struct AttentionHeads {
  Tensor query, key, value;
  std::optional<Tensor> mask;
  DimVector batch;
  bool as_given = false;
};

AttentionHeads as_heads(const AttentionCall& c) {
  const bool four = c.query.dim() == 4 && c.key.dim() == 4 && c.value.dim() == 4;
  // These kernels share heads themselves.
  if (c.by_device() && c.enable_gqa && four && c.query.size(0) == c.key.size(0) && c.query.size(0) == c.value.size(0) &&
      c.key.size(1) == c.value.size(1) && c.key.size(1) > 0 && c.query.size(1) % c.key.size(1) == 0) {
    return {c.query, c.key, c.value, c.mask, DimVector(leading(c.query)), true};
  }
  const Tensor key = shared_as_asked(c, c.key), value = shared_as_asked(c, c.value);
  DimVector batch =
      broadcast_shapes(broadcast_shapes(leading(c.query), leading(key), kAttention), leading(value), kAttention);
  if (c.mask) batch = broadcast_shapes(batch, leading(*c.mask), kAttention);
  const auto is_whole = [&](const Tensor& t) { return leading(t) == IntArrayRef(batch); };
  if (batch.size() == 2 && is_whole(c.query) && is_whole(key) && is_whole(value)) {
    return {c.query, key, value, c.mask, batch, true};
  }
  AttentionHeads heads;
  const int64_t count = checked_numel(batch);
  const auto single = [&](const Tensor& t, int64_t rows, int64_t columns) {
    return t.expand(with(batch, {rows, columns})).reshape({count, 1, rows, columns});
  };
  const int64_t queries = c.query.size(-2), keys = key.size(-2), width = c.query.size(-1);
  heads.query = single(c.query, queries, width);
  heads.key = single(key, keys, width);
  heads.value = single(value, keys, value.size(-1));
  if (c.mask) heads.mask = single(*c.mask, queries, keys);
  heads.batch = batch;
  return heads;
}

// ---- the choice ----

constexpr SDPBackend kByDevice[] = {SDPBackend::cudnn_attention, SDPBackend::efficient_attention, SDPBackend::math};
constexpr SDPBackend kElsewhere[] = {SDPBackend::flash_attention, SDPBackend::math};

ArrayRef<SDPBackend> backends_for(const AttentionCall& call) {
  return call.by_device() ? ArrayRef<SDPBackend>(kByDevice) : ArrayRef<SDPBackend>(kElsewhere);
}

// A back end's name and its switch.
struct SDPSwitch {
  const char* name;
  bool (Context::*is_enabled)() const;
  void (Context::*set)(bool);
};
// By the number of the back end.
constexpr SDPSwitch kSwitches[] = {
    {"math", &Context::userEnabledMathSDP, &Context::setSDPUseMath},
    {"flash_attention", &Context::userEnabledFlashSDP, &Context::setSDPUseFlash},
    {"efficient_attention", &Context::userEnabledMemEfficientSDP, &Context::setSDPUseMemEfficient},
    {"cudnn_attention", &Context::userEnabledCuDNNSDP, &Context::setSDPUseCuDNN}};

bool is_enabled(size_t backend) { return (globalContext().*kSwitches[backend].is_enabled)(); }

// Why the back end does not run the call; null where it does. `heads` is made when it is first needed.
const char* refusal(SDPBackend backend, const AttentionCall& call, std::optional<AttentionHeads>& heads) {
  if (!is_enabled(static_cast<size_t>(backend))) return "switched off";
  if (backend == SDPBackend::math) return nullptr;
  if (!call.query.is_floating_point()) return "computes with real floating-point numbers only";
  if (call.mask && call.mask->requires_grad()) return "has no gradient by attn_mask";
  if (backend == SDPBackend::flash_attention) {
    if (call.dropout_p > 0) return "has no dropout on the CPU";
    if (!heads) heads = as_heads(call);
    return nullptr;
  }
  if (!heads) {
    heads = as_heads(call);
    if (heads->mask) heads->mask = mask_as_numbers(*heads->mask, call.query);  // once for the back ends that are asked
  }
  const bool is_cudnn = backend == SDPBackend::cudnn_attention;
  const auto& asked = is_cudnn ? kernels::cudnn_attention_refusal : kernels::efficient_attention_refusal;
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  const DeviceGuard device(call.query.device());  // a composite does not make it current
  const char* why = nullptr;
  asked(call.query.device().type, why,
        attention_problem(kAttention, heads->query, heads->key, heads->value, heads->mask, call.dropout_p,
                          call.is_causal, call.scale),
        call.wants_gradient());
  return why;
}

SDPBackend choose(const AttentionCall& call, std::optional<AttentionHeads>& heads) {
  for (const SDPBackend backend : backends_for(call)) {
    if (!refusal(backend, call, heads)) return backend;
  }
  return SDPBackend::error;
}

std::string refusals(const AttentionCall& call) {
  std::string all;
  std::optional<AttentionHeads> heads;
  for (const SDPBackend backend : backends_for(call)) {
    const char* why = refusal(backend, call, heads);
    if (why) all += str(all.empty() ? "" : "; ", kSwitches[static_cast<size_t>(backend)].name, ": ", why);
  }
  return all;
}

Tensor run_fused(SDPBackend backend, const AttentionCall& c, const AttentionHeads& heads) {
  const Tensor &query = heads.query, &key = heads.key, &value = heads.value;
  if (backend == SDPBackend::cudnn_attention) {
    return std::get<0>(ops::_scaled_dot_product_cudnn_attention(query, key, value, heads.mask, c.wants_gradient(),
                                                                c.dropout_p, c.is_causal, false, c.scale));
  }
  if (backend == SDPBackend::efficient_attention) {
    return std::get<0>(ops::_scaled_dot_product_efficient_attention(query, key, value, heads.mask, c.wants_gradient(),
                                                                    c.dropout_p, c.is_causal, c.scale));
  }
  return std::get<0>(ops::_scaled_dot_product_flash_attention_for_cpu(query, key, value, c.dropout_p, c.is_causal,
                                                                      heads.mask, c.scale));
}

AttentionCall checked_call(const Tensor& query, const Tensor& key, const Tensor& value,
                           const std::optional<Tensor>& mask, double dropout_p, bool is_causal,
                           std::optional<double> scale, bool enable_gqa) {
  check_attention(kAttention, query, key, value, mask, dropout_p, is_causal);
  return {query, key, value, mask, dropout_p, is_causal, attention_scale(query, scale), enable_gqa};
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                 double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const AttentionCall call = checked_call(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
  std::optional<AttentionHeads> heads;
  const SDPBackend backend = choose(call, heads);
  RUSH_CHECK_NOT_IMPLEMENTED(backend != SDPBackend::error, kAttention, ": no back end computes this: ", refusals(call));
  if (backend == SDPBackend::math) return attention_by_parts(call);
  const Tensor out = run_fused(backend, call, *heads);
  if (heads->as_given) return out;
  return out.reshape(with(heads->batch, {out.size(2), out.size(3)}));
}

int64_t fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                         double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  std::optional<AttentionHeads> heads;
  return static_cast<int64_t>(
      choose(checked_call(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa), heads));
}

}  // namespace
}  // namespace native

std::string sdp_refusals(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                         std::optional<double> scale, bool enable_gqa) {
  registry();  // kernels are asked
  return native::refusals(native::checked_call(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa));
}

SDPBackendGuard::SDPBackendGuard(std::initializer_list<SDPBackend> enabled) {
  for (size_t i = 0; i < before_.size(); ++i) {
    before_[i] = native::is_enabled(i);
    const bool named = std::find(enabled.begin(), enabled.end(), static_cast<SDPBackend>(i)) != enabled.end();
    (globalContext().*native::kSwitches[i].set)(named);
  }
}

SDPBackendGuard::~SDPBackendGuard() {
  for (size_t i = 0; i < before_.size(); ++i) (globalContext().*native::kSwitches[i].set)(before_[i]);
}

void register_attention_ops(Registry& r) {
  r.composite(ops::scaled_dot_product_attention, native::attention);
  r.composite(ops::_fused_sdp_choice, native::fused_sdp_choice);
}

}  // namespace rush
