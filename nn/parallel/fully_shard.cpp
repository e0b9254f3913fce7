#include "nn/parallel/fully_shard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "nn/clip_grad.h"
#include "nn/parallel/group_dims.h"
#include "nn/parallel/same_everywhere.h"
#include "nn/parallel/sharded_unit.h"
#include "nn/parallel/tensor_parallel.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;
using nn::detail::ModuleWalk;

namespace {

ShardedUnit* unit_of(const Module& module) { return dynamic_cast<ShardedUnit*>(module.forward_observer().get()); }

// Of a module and all below it.
std::unordered_set<const Module*> subtree(const Module& module) {
  std::unordered_set<const Module*> all;
  for (ModuleWalk walk(module, ""); !walk.done(); walk.next()) all.insert(&walk.module());
  return all;
}

// A parameter of an earlier call must be one of the module that was sharded then, wherever it is registered.
void check_not_shared(const Module& root) {
  std::unordered_map<const ShardedUnit*, std::unordered_set<const Module*>> of_units;
  for (ModuleWalk walk(root, ""); !walk.done(); walk.next()) {
    if (const ShardedUnit* unit = unit_of(walk.module())) of_units.emplace(unit, subtree(walk.module()));
  }
  for (ModuleWalk walk(root, ""); !walk.done(); walk.next()) {
    for (const auto& item : walk.module().named_parameters(/*recurse=*/false)) {
      const ShardedUnit* unit = ShardedUnit::owner_of(item.value()).unit;
      if (!unit) continue;
      const auto found = of_units.find(unit);
      RUSH_CHECK_VALUE(
          found != of_units.end() && found->second.count(&walk.module()), "fully_shard: the parameter '",
          nn::detail::join_names(walk.name(), item.key()),
          "' is shared with a module that was sharded without this one; shard a module that contains both");
    }
  }
}

void check_parameter(const std::string& name, const Tensor& parameter, const Tensor& first) {
  RUSH_CHECK_TYPE(parameter.layout() == kStrided, "fully_shard: the parameter '", name, "' is ", parameter.layout(),
                  ", and only dense ones have rows to split");
  RUSH_CHECK_VALUE(parameter.dim() > 0, "fully_shard: the parameter '", name,
                   "' has no dimension to split; make it one of shape {1}");
  RUSH_CHECK_VALUE(!parameter.is_view(), "fully_shard: the parameter '", name,
                   "' is a view, whose memory its base would keep; register a clone of it");
  RUSH_CHECK_TYPE(parameter.scalar_type() == first.scalar_type(), "fully_shard: the parameter '", name, "' is of ",
                  parameter.scalar_type(), ", others of ", first.scalar_type(),
                  "; parameters that are gathered together have one dtype");
  RUSH_CHECK_VALUE(parameter.device() == first.device(), "fully_shard: the parameter '", name, "' is on ",
                   parameter.device(), ", others are on ", first.device());
}

void check_dtype(const char* what, std::optional<ScalarType> dtype) {
  RUSH_CHECK_TYPE(!dtype || is_floating_point(*dtype), "fully_shard: ", what, " is ", *dtype,
                  ", expected one of floating point");
}

// Of all processes that train together.
void make_same(const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
               const distributed::Group& group) {
  check_same_everywhere("fully_shard", names, tensors, group);
  for (const Tensor& tensor : tensors) distributed::broadcast(tensor, group->ranks()[0], group);
}

// Among whose processes a parameter's rows and its features are split; null where they are not.
using SplitAmong = std::array<distributed::Group, 2>;

SplitAmong groups_of(const Tensor& parameter) {
  const ShardedUnit::Owner owner = ShardedUnit::owner_of(parameter);
  return {owner.unit ? owner.unit->options().process_group() : nullptr, SplitModule::group_of(parameter)};
}

}  // namespace

void fully_shard(Module& module, const FullyShardOptions& options) {
  RUSH_CHECK(!module.forward_observer(), "fully_shard: ", module.path(), " has been sharded already");
  const auto& policy = options.mp_policy();
  check_dtype("param_dtype", policy.param_dtype());
  check_dtype("reduce_dtype", policy.reduce_dtype());
  check_not_shared(module);
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& item : module.named_parameters()) {
    if (ShardedUnit::owner_of(item.value()).unit) continue;
    names.push_back(item.key());
    tensors.push_back(item.value());
    check_parameter(names.back(), tensors.back(), tensors[0]);
  }
  auto chosen = options;
  if (!chosen.process_group()) chosen.process_group(distributed::world());
  make_same(names, tensors, chosen.process_group());
  if (chosen.replicate_group()) make_same(names, tensors, chosen.replicate_group());
  module.set_forward_observer(std::make_shared<ShardedUnit>(std::move(names), tensors, std::move(chosen)));
}

void set_requires_gradient_sync(Module& module, bool on) {
  for (ModuleWalk walk(module, ""); !walk.done(); walk.next()) {
    if (ShardedUnit* unit = unit_of(walk.module())) unit->set_synchronizes(on);
  }
}

Tensor full_tensor(const Tensor& parameter) {
  const ShardedUnit::Owner owner = ShardedUnit::owner_of(parameter);
  if (!owner.unit) return parameter;
  const NoGradGuard no_grad;
  const ShardedUnit::Parameter& p = owner.parameter();
  return detail::gather_chunks(p.own().detach(), 0, p.rows(), owner.unit->options().process_group());
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  RUSH_CHECK_VALUE(norm_type > 0, "clip_grad_norm_: norm_type is ", norm_type,
                   "; the norm of sharded gradients has an order above 0");
  const NoGradGuard no_grad;
  std::vector<std::pair<SplitAmong, std::vector<Tensor>>> alike;
  for (const Tensor& parameter : parameters) {
    const SplitAmong groups = groups_of(parameter);
    auto found = std::ranges::find(alike, groups, &std::pair<SplitAmong, std::vector<Tensor>>::first);
    if (found == alike.end()) found = alike.insert(found, {groups, {}});
    found->second.push_back(parameter);
  }
  const bool is_maximum = std::isinf(norm_type);
  double total = 0;
  for (const auto& [groups, members] : alike) {
    std::vector<Tensor> gradients = utils::gradients_of(members);
    std::erase_if(gradients, [](const Tensor& gradient) { return gradient.numel() == 0; });
    Tensor norm = utils::get_total_norm(gradients, norm_type).to(kFloat64).cpu();
    if (!is_maximum) norm = norm.pow(norm_type);
    for (const distributed::Group& group : groups) {
      if (group) distributed::all_reduce(norm, is_maximum ? ReduceOp::MAX : ReduceOp::SUM, group);
    }
    const double part = norm.item<double>();
    total = !is_maximum ? total + part : std::isnan(part) || part > total ? part : total;
  }
  if (!is_maximum) total = std::pow(total, 1 / norm_type);
  RUSH_CHECK(!error_if_nonfinite || std::isfinite(total), "clip_grad_norm_: the norm of order ", norm_type,
             " of the gradients is non-finite, ", total, "; pass error_if_nonfinite=false to scale them nevertheless");
  utils::clip_grads_with_norm_(parameters, max_norm, full({}, total, kFloat64));
  return total;
}

}  // namespace rush::nn::parallel
