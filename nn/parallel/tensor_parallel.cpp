#include "nn/parallel/tensor_parallel.h"

#include <mutex>
#include <unordered_map>

#include "autograd/function.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "core/ops/index/gather.h"
#include "nn/functional.h"
#include "nn/module_scope.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace parallel {

using distributed::Group;

namespace {

using autograd::AutogradContext;

// Where the input of a column-parallel product comes from: whole, or split in a dimension.
struct ProductPlan {
  Group group;
  std::optional<int64_t> sequence_dim;
};

// input weight^T + bias. The backward pass computes the weight's gradient while the collective of the input's travels,
// and gathers a split input again in place of keeping it.
struct ColumnProduct : autograd::Function<ColumnProduct> {
  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const ProductPlan& plan) {
    ctx->saved_data["plan"] = plan;
    ctx->save_for_backward({input, weight});
    return functional::linear(whole_input(input, plan), weight, bias);
  }

  static Tensors backward(AutogradContext* ctx, Tensors grads) {
    const auto& plan = std::any_cast<const ProductPlan&>(ctx->saved_data["plan"]);
    const Tensors saved = ctx->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &grad = grads[0];
    RUSH_CHECK_NOT_IMPLEMENTED(!GradMode::is_enabled(), "ColumnParallelLinear: there is no second derivative");
    const bool needs_input = ctx->needs_input_grad(0), needs_weight = ctx->needs_input_grad(1);

    std::optional<detail::Gathering> gathering;
    if (needs_weight && plan.sequence_dim) gathering.emplace(input, *plan.sequence_dim, plan.group);
    distributed::Arriving grad_input;
    if (needs_input) grad_input = begin_sum(grad.matmul(weight).contiguous(), plan);
    Tensor grad_weight, grad_bias;
    const auto rows = [](const Tensor& t) { return t.reshape({-1, t.size(-1)}); };
    if (needs_weight) grad_weight = rows(grad).t().matmul(rows(gathering ? gathering->wait() : input));
    if (ctx->needs_input_grad(2)) grad_bias = rows(grad).sum(0);
    return {grad_input.take(), grad_weight, grad_bias, {}};
  }

 private:
  static distributed::Arriving begin_sum(const Tensor& partial, const ProductPlan& plan) {
    if (plan.sequence_dim) return detail::begin_sum_to_split(partial, *plan.sequence_dim, plan.group);
    return {partial, distributed::all_reduce(partial, distributed::ReduceOp::SUM, plan.group, /*async_op=*/true)};
  }
  static Tensor whole_input(const Tensor& input, const ProductPlan& plan) {
    return plan.sequence_dim ? detail::Gathering(input, *plan.sequence_dim, plan.group).wait() : input;
  }
};

// The groups of parameters that are split.
struct SplitGroups {
  std::mutex mutex;
  std::unordered_map<const TensorImpl*, Group> groups;
};

SplitGroups& split_groups() {
  static SplitGroups& all = *new SplitGroups;
  return all;
}

void check_indices(const char* who, const Tensor& indices, int64_t rows) {
  if (indices.numel() == 0) return;
  const int64_t least = indices.min().item<int64_t>(), most = indices.max().item<int64_t>();
  RUSH_CHECK_INDEX(least >= 0 && most < rows, who, ": expected numbers from 0 to ", rows - 1, ", got ",
                   least < 0 ? least : most);
}

// Which of `indices` are among this process's rows, and what they are there; 0 for the others. On the CPU an index that
// no process has throws here. An accelerator is not waited for: what takes rows by `local` finds such an index there.
struct OwnIndices {
  Tensor are_own, local;
  OwnIndices(const char* who, const Tensor& indices, int64_t rows, const Group& group) {
    const int64_t all = rows * group->size();
    const Tensor shifted = indices - group->rank() * rows;
    are_own = shifted.ge(0).logical_and(shifted.lt(rows));
    local = shifted.mul(are_own);
    if (indices.is_cpu()) {
      check_indices(who, indices, all);
    } else {
      local = where(indices.ge(0).logical_and(indices.lt(all)), local, indices);
    }
  }
};

}  // namespace

Tensor SplitModule::register_part(const char* name, const Tensor& whole) {
  distributed::detail::check_member(this->name().c_str(), group_);
  if (!whole.defined()) return register_parameter(name, {}, false);
  const std::optional<int64_t> dim = split_dim(name);
  const Tensor part = dim ? detail::own_part(this->name().c_str(), whole.detach(), *dim, group_) : whole.detach();
  const Tensor own = register_parameter(name, part.clone(MemoryFormat::Contiguous), whole.requires_grad());
  const std::lock_guard lock(split_groups().mutex);
  if (dim) split_groups().groups[own.impl()] = group_;
  return own;
}

SplitModule::~SplitModule() {
  const std::lock_guard lock(split_groups().mutex);
  for (const Tensor& own : {weight, bias}) split_groups().groups.erase(own.impl());
}

Group SplitModule::group_of(const Tensor& parameter) {
  const std::lock_guard lock(split_groups().mutex);
  const auto found = split_groups().groups.find(parameter.impl());
  return found == split_groups().groups.end() ? nullptr : found->second;
}

Tensor SplitModule::sum_of(const Tensor& partial) const {
  return options.sequence_dim() ? sum_to_split(partial, *options.sequence_dim(), group_)
                                : sum_from_group(partial, group_);
}

void SplitModule::pretty_print(std::ostream& stream) const {
  stream << str(name(), "(", weight.size(0), " x ", weight.size(1), ", one of ", group_->size(), " parts)");
}

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const Linear& whole, Group group,
                                                   const ParallelLinearOptions& options)
    : SplitModule("ColumnParallelLinear", std::move(group), options) {
  weight = register_part("weight", whole->weight);
  bias = register_part("bias", whole->bias);
}

Tensor ColumnParallelLinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const Tensor result = ColumnProduct::apply(detail::lowered(input), detail::lowered(weight), detail::lowered(bias),
                                             ProductPlan{group_, options.sequence_dim()});
  return options.gather_output() ? gather_from_group(result, -1, group_) : result;
}

RowParallelLinearImpl::RowParallelLinearImpl(const Linear& whole, Group group, const ParallelLinearOptions& options)
    : SplitModule("RowParallelLinear", std::move(group), options) {
  weight = register_part("weight", whole->weight);
  bias = register_part("bias", whole->bias);
}

std::optional<int64_t> RowParallelLinearImpl::split_dim(std::string_view parameter) const {
  return parameter == "weight" ? std::optional<int64_t>(1) : std::nullopt;
}

Tensor RowParallelLinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const Tensor result = sum_of(functional::linear(input, weight));
  return bias.defined() ? result + bias : result;
}

VocabParallelEmbeddingImpl::VocabParallelEmbeddingImpl(const Embedding& whole, Group group,
                                                       const ParallelLinearOptions& options)
    : SplitModule("VocabParallelEmbedding", std::move(group), options) {
  const EmbeddingOptions& of_whole = whole->options;
  RUSH_CHECK_NOT_IMPLEMENTED(
      !of_whole.padding_idx() && !of_whole.max_norm() && !of_whole.scale_grad_by_freq() && !of_whole.sparse(),
      "VocabParallelEmbedding: there is no padding_idx, max_norm, scale_grad_by_freq or sparse");
  weight = register_part("weight", whole->weight);
}

Tensor VocabParallelEmbeddingImpl::forward(const Tensor& indices) {
  const ModuleScope scope(*this);
  const OwnIndices own("VocabParallelEmbedding", indices, weight.size(0), group_);
  const Tensor found = functional::embedding(own.local, weight);
  return sum_of(found.mul(own.are_own.unsqueeze(-1)));
}

Tensor vocab_parallel_cross_entropy(const Tensor& scores, const Tensor& targets, const Group& group) {
  distributed::detail::check_member("vocab_parallel_cross_entropy", group);
  RUSH_CHECK_VALUE(
      scores.dim() > 0 && targets.sizes() == scores.sizes().slice(0, static_cast<size_t>(scores.dim() - 1)),
      "vocab_parallel_cross_entropy: expected a target for each row of scores ", scores.sizes(), ", got ",
      targets.sizes());
  Tensor largest = scores.detach().amax(-1, true);
  distributed::all_reduce(largest, distributed::ReduceOp::MAX, group);
  const Tensor shifted = scores - largest;
  const OwnIndices own("vocab_parallel_cross_entropy", targets, scores.size(-1), group);
  const Tensor chosen = gather(shifted, -1, own.local.unsqueeze(-1)).squeeze(-1).mul(own.are_own);
  const Tensor both = sum_from_group(stack({shifted.exp().sum(-1), chosen}), group);
  return (both.select(0, 0).log() - both.select(0, 1)).mean();
}

}  // namespace parallel
}  // namespace rush::nn
