#include "nn/parallel/group_dims.h"

#include "autograd/function.h"
#include "core/amp/autocast.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace rush::nn::parallel {

using distributed::Group;

namespace detail {

void check_member(const char* who, const Group& group) {
  RUSH_CHECK_DISTRIBUTED(group, who, ": this process is no member of the group");
}

Gathering::Gathering(const Tensor& x, int64_t dim, const Group& group) : dim_(dim < 0 ? dim + x.dim() : dim) {
  check_member("a gathering of parts", group);
  DimVector sizes(x.sizes());
  sizes.insert(sizes.begin(), group->size());
  all_ = empty(sizes, x.options());
  work_ = distributed::all_gather_into_tensor(all_, x, group, /*async_op=*/true);
}

Tensor Gathering::wait() {
  work_->wait();
  return all_.movedim(0, dim_).flatten(dim_, dim_ + 1);
}

SumOfParts::SumOfParts(const Tensor& x, int64_t dim, const Group& group) {
  check_member("sum_to_split", group);
  if (dim < 0) dim += x.dim();
  RUSH_CHECK_VALUE(x.size(dim) % group->size() == 0, "sum_to_split: dimension ", dim, " has ", x.size(dim),
                   " elements, which cannot be split among ", group->size(), " processes");
  parts_ = x.unflatten(dim, {group->size(), x.size(dim) / group->size()}).movedim(dim, 0).contiguous();
  part_ = empty(parts_.sizes().slice(1), x.options());
  work_ = distributed::reduce_scatter_tensor(part_, parts_, distributed::ReduceOp::SUM, group, /*async_op=*/true);
}

Tensor SumOfParts::wait() {
  work_->wait();
  parts_ = {};
  return part_;
}

Tensor lowered(const Tensor& t) {
  if (!t.defined() || !autocast::is_autocast_enabled(t.device().type)) return t;
  return autocast::cached_cast(autocast::get_autocast_dtype(t.device().type), t, t.device().type);
}

Tensor own_part(const char* who, const Tensor& x, int64_t dim, const Group& group) {
  check_member(who, group);
  const int64_t size = x.size(dim), processes = group->size();
  RUSH_CHECK_VALUE(size % processes == 0, who, ": dimension ", dim, " has ", size,
                   " elements, which cannot be split among ", processes, " processes");
  return x.narrow(dim, group->rank() * (size / processes), size / processes);
}

}  // namespace detail

namespace {

using autograd::AutogradContext;

const Group& group_of(const AutogradContext* ctx) {
  return *std::any_cast<Group>(static_cast<const std::any*>(&ctx->saved_data.at("group")));
}

struct CopyToGroup : autograd::Function<CopyToGroup> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Group& group) {
    detail::check_member("copy_to_group", group);
    ctx->saved_data["group"] = group;
    return x;
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) { return {sum_from_group(g[0], group_of(ctx)), {}}; }
};

struct SumFromGroup : autograd::Function<SumFromGroup> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Group& group) {
    ctx->saved_data["group"] = group;
    Tensor sum = x.clone(MemoryFormat::Contiguous);
    distributed::all_reduce(sum, distributed::ReduceOp::SUM, group);
    return sum;
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) { return {copy_to_group(g[0], group_of(ctx)), {}}; }
};

// The four that have a dimension: forward computes, and the derivative is another of them.
template <auto compute, Tensor (&derivative)(const Tensor&, int64_t, const Group&)>
struct WithDim : autograd::Function<WithDim<compute, derivative>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t dim, const Group& group) {
    ctx->saved_data["dim"] = dim;
    ctx->saved_data["group"] = group;
    return compute(x, dim, group);
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) {
    return {derivative(g[0], ctx->saved_data["dim"].toInt(), group_of(ctx)), {}, {}};
  }
};

Tensor scattered(const Tensor& x, int64_t dim, const Group& group) {
  return detail::own_part("scatter_to_group", x, dim, group);
}
Tensor gathered(const Tensor& x, int64_t dim, const Group& group) { return detail::Gathering(x, dim, group).wait(); }
Tensor summed(const Tensor& x, int64_t dim, const Group& group) { return detail::SumOfParts(x, dim, group).wait(); }

}  // namespace

Tensor copy_to_group(const Tensor& x, const Group& group) { return CopyToGroup::apply(x, group); }
Tensor sum_from_group(const Tensor& x, const Group& group) { return SumFromGroup::apply(x, group); }
Tensor scatter_to_group(const Tensor& x, int64_t dim, const Group& group) {
  return WithDim<scattered, gather_from_group>::apply(x, dim, group);
}
Tensor gather_from_group(const Tensor& x, int64_t dim, const Group& group) {
  return WithDim<gathered, scatter_to_group>::apply(x, dim, group);
}
Tensor gather_to_compute(const Tensor& x, int64_t dim, const Group& group) {
  return WithDim<gathered, sum_to_split>::apply(x, dim, group);
}
Tensor sum_to_split(const Tensor& x, int64_t dim, const Group& group) {
  return WithDim<summed, gather_to_compute>::apply(x, dim, group);
}

void sum_gradients(const std::vector<Tensor>& parameters, const Group& group) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    if (!parameter.grad().defined()) parameter.mutable_grad() = zeros_like(parameter.detach());
    grads.push_back(parameter.grad());
  }
  if (!grads.empty()) distributed::all_reduce_coalesced(grads, distributed::ReduceOp::SUM, group);
}

}  // namespace rush::nn::parallel
