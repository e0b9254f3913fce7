#include "nn/parallel/context_parallel.h"

#include <cmath>

#include "autograd/function.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "core/ops/nn/attention.h"
#include "core/ops/nn/fused_attention.h"
#include "core/ops/pointwise/power.h"
#include "nn/parallel/group_dims.h"

namespace rush::nn::parallel {

using distributed::Group;

Tensor context_part(const Tensor& whole, int64_t dim, const Group& group) {
  distributed::detail::check_member("context_part", group);
  if (group->size() == 1) return whole;
  const int64_t chunks = 2 * group->size(), size = whole.size(dim);
  RUSH_CHECK_VALUE(size % chunks == 0, "context_part: a sequence of ", size, " positions cannot be cut into ", chunks,
                   " equal chunks, two for each of ", group->size(), " processes");
  const int64_t chunk = size / chunks, rank = group->rank();
  return cat({whole.narrow(dim, rank * chunk, chunk), whole.narrow(dim, (chunks - 1 - rank) * chunk, chunk)}, dim);
}

Tensor context_whole(const Tensor& part, int64_t dim, const Group& group) {
  distributed::detail::check_member("context_whole", group);
  const std::vector<Tensor> halves = detail::Gathering(part, dim, group).wait().chunk(2 * group->size(), dim);
  std::vector<Tensor> in_order(halves.size());
  for (size_t i = 0; i < halves.size(); ++i) in_order[i % 2 == 0 ? i / 2 : halves.size() - 1 - i / 2] = halves[i];
  return cat(in_order, dim);
}

namespace {

using autograd::AutogradContext;

Tensor half(const Tensor& t, bool second) {  // of the positions
  const int64_t n = t.size(2) / 2;
  return t.narrow(2, second ? n : 0, n);
}

// What a process computes of one other's keys: with the second half of its queries, or the first half of the keys.
struct Block {
  bool is_causal = false;  // of its own
  bool later_queries_only = false, earlier_keys_only = false;
  Tensor queries(const Tensor& t) const { return later_queries_only ? half(t, true) : t; }
  Tensor keys(const Tensor& t) const { return earlier_keys_only ? half(t, false) : t; }
};

struct RingPlan {
  Group group;
  bool is_causal;
  double scale;

  // In step `step` a process has the keys of the one that is so many before it in the ring.
  int source(int step) const { return (group->rank() - step + group->size()) % group->size(); }
  int next() const { return (group->rank() + 1) % group->size(); }  // in the group
  int previous() const { return source(1); }
  Block block(int step) const {
    if (!is_causal || step == 0) return {.is_causal = is_causal};
    const bool is_earlier = source(step) < group->rank();
    return {.later_queries_only = !is_earlier, .earlier_keys_only = is_earlier};
  }
};

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal, double scale) {
  if (q.device().is_cpu()) return ops::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal, {}, scale);
  const auto [out, lse, seed, offset] =
      ops::_scaled_dot_product_efficient_attention(q, k, v, {}, true, 0.0, is_causal, scale);
  return {out, lse};
}

struct Grads {
  Tensor query, key, value;
};

Grads attention_backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                         const Tensor& lse, bool is_causal, double scale) {
  if (q.device().is_cpu()) {
    const auto [dq, dk, dv] =
        ops::_scaled_dot_product_flash_attention_for_cpu_backward(grad, q, k, v, out, lse, 0.0, is_causal, {}, scale);
    return {dq, dk, dv};
  }
  const auto [dq, dk, dv, dbias] = ops::_scaled_dot_product_efficient_attention_backward(
      grad, q, k, v, {}, out, lse, {}, {}, 0.0, {true, true, true, false}, is_causal, scale);
  return {dq, dk, dv};
}

// Sends a tensor to the next process, while one of its shape comes from the one before. It is one collective for both
// directions: NCCL carries out calls one after the other, and all processes would send first.
distributed::Arriving exchange(const Tensor& sent, const RingPlan& plan) {
  const Tensor received = empty_like(sent);
  std::vector<int64_t> arriving(static_cast<size_t>(plan.group->size())), leaving = arriving;
  arriving[static_cast<size_t>(plan.previous())] = leaving[static_cast<size_t>(plan.next())] = sent.numel();
  return {received, distributed::all_to_all_single(received.view({-1}), sent.view({-1}), arriving, leaving, plan.group,
                                                   /*async_op=*/true)};
}

struct RingAttention : autograd::Function<RingAttention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& query, const Tensor& key, const Tensor& value,
                        const RingPlan& plan) {
    Tensor keys = stack({key, value});  // (2, B, H, T, D), of the process whose turn it is
    Tensor out, lse;                    // in the dtype of lse
    for (int step = 0; step < plan.group->size(); ++step) {
      const bool is_last = step + 1 == plan.group->size();
      distributed::Arriving next_keys = is_last ? distributed::Arriving() : exchange(keys, plan);
      const Block block = plan.block(step);
      const auto [o, l] = attention(block.queries(query), block.keys(keys.select(0, 0)), block.keys(keys.select(0, 1)),
                                    block.is_causal, plan.scale);
      if (step == 0) {
        out = o.to(l.scalar_type());
        lse = l;
      } else {
        add_block(block.queries(out), block.queries(lse), o, l);
      }
      if (!is_last) keys = next_keys.take();
    }
    out = out.to(query.scalar_type());
    ctx->saved_data["plan"] = plan;
    ctx->save_for_backward({query, key, value, out, lse});
    return out;
  }

  static Tensors backward(AutogradContext* ctx, Tensors grads) {
    const auto& plan = std::any_cast<const RingPlan&>(ctx->saved_data["plan"]);
    RUSH_CHECK_NOT_IMPLEMENTED(!GradMode::is_enabled(), "ring_attention: there is no second derivative");
    const Tensors saved = ctx->get_saved_variables();
    const Tensor &query = saved[0], &out = saved[3], &lse = saved[4];
    Tensor keys = stack({saved[1], saved[2]});
    // Sums are kept in the dtype of lse: float32 for 16 bits.
    const TensorOptions wide = query.options().dtype(lse.scalar_type());
    Tensor grad_query = zeros(query.sizes(), wide);
    Tensor grad_keys = zeros(keys.sizes(), wide);  // of those of the process whose turn it is
    distributed::Arriving next_grads;
    for (int step = 0; step < plan.group->size(); ++step) {
      const bool is_last = step + 1 == plan.group->size();
      distributed::Arriving next_keys = is_last ? distributed::Arriving() : exchange(keys, plan);
      const Block block = plan.block(step);
      const Grads own =
          attention_backward(block.queries(grads[0]).contiguous(), block.queries(query), block.keys(keys.select(0, 0)),
                             block.keys(keys.select(0, 1)), block.queries(out), block.queries(lse).contiguous(),
                             block.is_causal, plan.scale);
      block.queries(grad_query).add_(own.query);
      if (step > 0) grad_keys = next_grads.take();
      block.keys(grad_keys.select(0, 0)).add_(own.key);
      block.keys(grad_keys.select(0, 1)).add_(own.value);
      next_grads = exchange(grad_keys, plan);
      if (!is_last) keys = next_keys.take();
    }
    grad_keys = next_grads.take();
    const auto narrow = [&](const Tensor& t) { return t.to(query.scalar_type()); };
    return {narrow(grad_query), narrow(grad_keys.select(0, 0)), narrow(grad_keys.select(0, 1)), {}};
  }

 private:
  // Takes the attention to more keys into that to others: out (B, H, T, D) and lse (B, H, T), in place.
  static void add_block(Tensor out, Tensor lse, const Tensor& more, const Tensor& lse_of_more) {
    const Tensor both = ops::logaddexp(lse, lse_of_more);
    out.mul_((lse - both).exp_().unsqueeze(-1)).add_(more * (lse_of_more - both).exp_().unsqueeze(-1));
    lse.copy_(both);
  }
};

}  // namespace

Tensor ring_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Group& group, bool is_causal,
                      std::optional<double> scale) {
  distributed::detail::check_member("ring_attention", group);
  RUSH_CHECK_VALUE(query.dim() == 4 && key.sizes() == query.sizes() && value.sizes() == query.sizes(),
                   "ring_attention: expected query, key and value of one shape (B, H, T, D), got ", query.sizes(), ", ",
                   key.sizes(), " and ", value.sizes());
  RUSH_CHECK_VALUE(!is_causal || group->size() == 1 || query.size(2) % 2 == 0, "ring_attention: a process has ",
                   query.size(2), " positions; expected two equal chunks, as context_part makes them");
  if (group->size() == 1) return scaled_dot_product_attention(query, key, value, {}, 0.0, is_causal, scale);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
  return RingAttention::apply(detail::lowered(query), detail::lowered(key), detail::lowered(value),
                              RingPlan{group, is_causal, factor});
}

}  // namespace rush::nn::parallel
