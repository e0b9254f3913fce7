#include "nn/parallel/group_dims.h"

#include <algorithm>

#include "autograd/function.h"
#include "core/amp/autocast.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace rush::nn::parallel {

using distributed::Group;

namespace detail {

Chunk chunk_of(int64_t rank, int64_t size, int64_t processes) {
  const int64_t each = (size + processes - 1) / processes, begin = std::min(rank * each, size);
  return {begin, std::min(each, size - begin)};
}

Tensor gather_chunks(const Tensor& chunk, int64_t dim, int64_t size, const Group& group) {
  const Tensor part = padded_to(chunk, dim, chunk_of(0, size, group->size()).size);
  return Gathering(part, dim, group).wait().narrow(dim, 0, size).contiguous();
}

Tensor padded_to(const Tensor& x, int64_t dim, int64_t size) {
  DimVector missing(x.sizes());
  missing[static_cast<size_t>(dim)] = size - x.size(dim);
  return size == x.size(dim) ? x : cat({x, zeros(missing, x.options())}, dim);
}

Gathering::Gathering(const Tensor& x, int64_t dim, const Group& group) : dim_(dim < 0 ? dim + x.dim() : dim) {
  distributed::detail::check_member("a gathering of parts", group);
  DimVector sizes(x.sizes());
  sizes.insert(sizes.begin(), group->size());
  all_ = empty(sizes, x.options());
  work_ = distributed::all_gather_into_tensor(all_, x, group, /*async_op=*/true);
}

Tensor Gathering::wait() {
  work_->wait();
  return all_.movedim(0, dim_).flatten(dim_, dim_ + 1);
}

distributed::Arriving begin_sum_to_split(const Tensor& x, int64_t dim, const Group& group) {
  const int64_t size = part_size("sum_to_split", x, dim, group);
  if (dim < 0) dim += x.dim();
  const Tensor parts = x.unflatten(dim, {group->size(), size}).movedim(dim, 0).contiguous();
  const Tensor part = empty(parts.sizes().slice(1), x.options());
  return {part, distributed::reduce_scatter_tensor(part, parts, distributed::ReduceOp::SUM, group, /*async_op=*/true)};
}

Tensor lowered(const Tensor& t) {
  if (!t.defined() || !autocast::is_autocast_enabled(t.device().type)) return t;
  return autocast::cached_cast(autocast::get_autocast_dtype(t.device().type), t, t.device().type);
}

int64_t part_size(const char* who, const Tensor& x, int64_t dim, const Group& group) {
  distributed::detail::check_member(who, group);
  const int64_t size = x.size(dim), processes = group->size();
  RUSH_CHECK_VALUE(size % processes == 0, who, ": dimension ", dim, " has ", size,
                   " elements, which cannot be split among ", processes, " processes");
  return size / processes;
}

Tensor own_part(const char* who, const Tensor& x, int64_t dim, const Group& group) {
  const int64_t size = part_size(who, x, dim, group);
  return x.narrow(dim, group->rank() * size, size);
}

}  // namespace detail

namespace {

using autograd::AutogradContext;

using Transition = Tensor(const Tensor& x, int64_t dim, const Group& group);

// From one region to another: the derivative is such a function, too. Two of them need no dimension.
template <Transition& compute, Transition& derivative>
struct Between : autograd::Function<Between<compute, derivative>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t dim, const Group& group) {
    ctx->saved_data["dim"] = dim;
    ctx->saved_data["group"] = group;
    return compute(x, dim, group);
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) {
    const auto& group = std::any_cast<const Group&>(ctx->saved_data["group"]);
    return {derivative(g[0], ctx->saved_data["dim"].toInt(), group), {}, {}};
  }
};

Tensor unchanged(const Tensor& x, int64_t, const Group& group) {
  distributed::detail::check_member("copy_to_group", group);
  return x;
}
Tensor summed(const Tensor& x, int64_t, const Group& group) {
  Tensor sum = x.clone(MemoryFormat::Contiguous);
  distributed::all_reduce(sum, distributed::ReduceOp::SUM, group);
  return sum;
}
Tensor scattered(const Tensor& x, int64_t dim, const Group& group) {
  return detail::own_part("scatter_to_group", x, dim, group);
}
Tensor gathered(const Tensor& x, int64_t dim, const Group& group) { return detail::Gathering(x, dim, group).wait(); }
Tensor sum_split(const Tensor& x, int64_t dim, const Group& group) {
  return detail::begin_sum_to_split(x, dim, group).take();
}

Tensor copy_without_dim(const Tensor& x, int64_t, const Group& group) { return copy_to_group(x, group); }
Tensor sum_without_dim(const Tensor& x, int64_t, const Group& group) { return sum_from_group(x, group); }

}  // namespace

Tensor copy_to_group(const Tensor& x, const Group& group) {
  return Between<unchanged, sum_without_dim>::apply(x, 0, group);
}
Tensor sum_from_group(const Tensor& x, const Group& group) {
  return Between<summed, copy_without_dim>::apply(x, 0, group);
}
Tensor scatter_to_group(const Tensor& x, int64_t dim, const Group& group) {
  return Between<scattered, gather_from_group>::apply(x, dim, group);
}
Tensor gather_from_group(const Tensor& x, int64_t dim, const Group& group) {
  return Between<gathered, scatter_to_group>::apply(x, dim, group);
}
Tensor gather_to_compute(const Tensor& x, int64_t dim, const Group& group) {
  return Between<gathered, sum_to_split>::apply(x, dim, group);
}
Tensor sum_to_split(const Tensor& x, int64_t dim, const Group& group) {
  return Between<sum_split, gather_to_compute>::apply(x, dim, group);
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
