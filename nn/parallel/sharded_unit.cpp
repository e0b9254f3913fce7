#include "nn/parallel/sharded_unit.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "autograd/accumulate_grad.h"
#include "autograd/backward_pass.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/ready_nodes.h"
#include "core/device/backend.h"
#include "core/distributed/collectives.h"
#include "core/memory/claim.h"
#include "core/ops/basic.h"
#include "core/ops/optim/foreach.h"
#include "nn/parallel/group_dims.h"

namespace rush::nn::parallel {

using distributed::ReduceOp;

namespace {

struct Owners {
  std::mutex mutex;
  std::unordered_map<const TensorImpl*, ShardedUnit::Owner> units;
};

Owners& owners() {
  static Owners& all = *new Owners;
  return all;
}

}  // namespace

// Runs on an accumulator, before it, which is left with nothing to add. The graph owns it.
class ShardedUnit::ArrivalHook final : public NodeHook {
 public:
  ArrivalHook(std::shared_ptr<ShardedUnit> unit, std::shared_ptr<ForwardPass> pass, size_t number)
      : unit_(std::move(unit)), pass_(std::move(pass)), number_(number) {}
  void operator()(Tensors& grads) override { unit_->arrive(number_, std::exchange(grads[0], Tensor())); }

 private:
  const std::shared_ptr<ShardedUnit> unit_;
  const std::shared_ptr<ForwardPass> pass_;
  const size_t number_;
};

ShardedUnit::ShardedUnit(std::vector<std::string> names, const std::vector<Tensor>& tensors, FullyShardOptions options)
    : options_(std::move(options)),
      group_(options_.process_group()),
      device_(tensors.empty() ? Device(kCPU) : tensors[0].device()) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Parameter p;
    p.name = std::move(names[i]);
    p.tensor = tensors[i];
    p.sizes = DimVector(tensors[i].sizes());
    p.chunk = detail::chunk_of(0, p.rows(), group_->size()).size;
    p.row_numel = p.rows() > 0 ? p.tensor.numel() / p.rows() : 0;
    block_sizes_.push_back(p.chunk_numel());
    block_numel_ += p.chunk_numel();
    const auto [first, rows] = detail::chunk_of(group_->rank(), p.rows(), group_->size());
    p.tensor.set_data(stored(p.tensor.detach().narrow(0, first, rows)));
    parameters_.push_back(std::move(p));
  }
  const std::lock_guard lock(owners().mutex);
  for (size_t i = 0; i < parameters_.size(); ++i) owners().units[parameters_[i].tensor.impl()] = {this, i};
}

ShardedUnit::~ShardedUnit() {
  const std::lock_guard lock(owners().mutex);
  for (const Parameter& p : parameters_) owners().units.erase(p.tensor.impl());
}

ShardedUnit::Owner ShardedUnit::owner_of(const Tensor& parameter) {
  const std::lock_guard lock(owners().mutex);
  const auto found = owners().units.find(parameter.impl());
  return found == owners().units.end() ? Owner() : found->second;
}

int64_t ShardedUnit::first_row(const Parameter& parameter) const {
  return detail::chunk_of(group_->rank(), parameter.rows(), group_->size()).begin;
}

// ---- whole parameters

// A shard's own memory for the rows.
Tensor ShardedUnit::stored(const Tensor& rows) const {
  const auto& policy = options_.offload_policy();
  if (!policy || rows.is_cpu()) return rows.clone(MemoryFormat::Contiguous);
  const Tensor offloaded = rows.contiguous().cpu();
  return policy->pin_memory() && pinning_backend() ? offloaded.pin_memory() : offloaded;
}

Tensor ShardedUnit::flat(int64_t blocks, int64_t block_numel, ScalarType dtype) const {
  return empty({blocks, block_numel}, TensorOptions(dtype).device(device_));
}

void ShardedUnit::begin_gather() {
  if (parameters_.empty() || gathered_.work || is_gathered_) return;
  const NoGradGuard no_grad;
  const ScalarType dtype = options_.mp_policy().param_dtype().value_or(parameters_[0].tensor.scalar_type());
  std::vector<Tensor> shards;
  for (const Parameter& p : parameters_) shards.push_back(p.tensor);
  const Tensor own = flat(1, block_numel_, dtype);
  foreach_to_blocks_(own, shards, block_sizes_);
  const Tensor all = flat(group_->size(), block_numel_, dtype);
  gathered_ = {all, distributed::all_gather_into_tensor(all, own.flatten(), group_, /*async_op=*/true)};
}

void ShardedUnit::finish_gather() {
  begin_gather();
  if (!gathered_.work) return;
  const NoGradGuard no_grad;
  const Tensor gathered = gathered_.take();
  std::vector<Tensor> all;
  for (const Parameter& p : parameters_) all.push_back(empty(p.sizes, gathered.options()));
  foreach_from_blocks_(all, gathered, block_sizes_);
  for (size_t i = 0; i < all.size(); ++i) {
    Parameter& p = parameters_[i];
    const Tensor& filled = all[i];
    rush::detail::claim_memory(filled, MemoryUse::Parameter);
    const bool is_alike =
        p.whole.defined() && p.whole.scalar_type() == filled.scalar_type() && p.whole.device() == filled.device();
    if (is_alike) {
      p.whole.storage()->swap_memory(*filled.storage());
      if (p.version != p.tensor._version()) p.whole.bump_version();  // what a graph has saved is no longer there
    } else {
      p.whole = filled;
    }
    p.version = p.tensor._version();
  }
  is_gathered_ = true;
}

void ShardedUnit::drop_gather() { gathered_.take(); }

void ShardedUnit::free_whole() noexcept {
  for (const Parameter& p : parameters_) {
    StorageImpl& storage = *p.whole.storage();
    storage.swap_memory(*make_intrusive<StorageImpl>(0, storage.device(), storage.allocator()));
  }
  is_gathered_ = false;
}

void ShardedUnit::enter_pass(uint64_t number) {
  if (std::exchange(last_pass_, number) != number && uses_ == 0 && is_gathered_) free_whole();
}

void ShardedUnit::use() {
  if (uses_ == 0) {
    finish_gather();
    for (Parameter& p : parameters_) {
      p.shard = p.tensor.detach();
      p.tensor.set_data(p.whole);
    }
  }
  ++uses_;
}

void ShardedUnit::end_use(bool frees) noexcept {
  if (--uses_ > 0) return;
  for (Parameter& p : parameters_) p.tensor.set_data(std::exchange(p.shard, Tensor()));
  if (frees && is_gathered_) free_whole();
}

// ---- gradients

void ShardedUnit::expect_gradients(const std::shared_ptr<ForwardPass>& pass, uint64_t first) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = parameters_[i];
    if (!p.tensor.requires_grad()) continue;
    p.accumulator = make_intrusive<AccumulateGrad>(p.tensor);
    p.accumulator->run_after(first + 1);
    p.accumulator->pre_hooks().push_back(std::make_unique<ArrivalHook>(shared_from_this(), pass, i));
    AutogradMeta& meta = need_meta(p.tensor);
    const std::lock_guard lock(meta.accumulator_mutex);
    meta.accumulator = p.accumulator.get();
  }
}

void ShardedUnit::release_accumulators() noexcept {
  for (Parameter& p : parameters_) p.accumulator.reset();
}

void ShardedUnit::arrive(size_t number, Tensor gradient) {
  if (!gradient.defined()) return;
  Parameter& p = parameters_[number];
  RUSH_CHECK_NOT_IMPLEMENTED(gradient.layout() == kStrided, "fully_shard: the gradient of '", p.name,
                             "' is sparse, and has no rows to share out");
  accumulate(p.gradient, std::move(gradient));
}

bool ShardedUnit::begin_reduction() {
  if (!synchronizes_) return false;
  const NoGradGuard no_grad;
  int64_t numel = 0;
  reducing_.clear();
  std::vector<Tensor> gradients;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].gradient.defined()) continue;
    reducing_.push_back(i);
    gradients.push_back(std::exchange(parameters_[i].gradient, Tensor()));
    sizes.push_back(block_sizes_[i]);
    numel += sizes.back();
  }
  if (reducing_.empty()) return false;
  const ScalarType dtype = options_.mp_policy().reduce_dtype().value_or(gradients[0].scalar_type());
  const Tensor all = flat(group_->size(), numel, dtype);
  foreach_to_blocks_(all, gradients, sizes);
  gradients.clear();
  const Tensor own = flat(1, numel, dtype).flatten();
  reduced_ = {own, distributed::reduce_scatter_tensor(own, all, ReduceOp::AVG, group_, /*async_op=*/true)};
  return true;
}

void ShardedUnit::finish_reduction() {
  const NoGradGuard no_grad;
  const Tensor reduced = reduced_.take();
  if (options_.replicate_group()) distributed::all_reduce(reduced, ReduceOp::AVG, options_.replicate_group());
  int64_t start = 0;
  for (const size_t i : reducing_) {
    const Parameter& p = parameters_[i];
    const Tensor& own = p.own();
    const Tensor mean = reduced.as_strided(own.sizes(), own.strides(), start).detach();
    const bool is_alike = mean.scalar_type() == own.scalar_type() && mean.device() == own.device();
    add_to_grad(p, is_alike ? mean : mean.to(own.scalar_type()).to(own.device()));
    start += block_sizes_[i];
  }
}

// As an accumulator of the shard would.
void ShardedUnit::add_to_grad(const Parameter& parameter, Tensor gradient) const {
  Tensors one{std::move(gradient)};
  run_hooks(get_meta(parameter.tensor)->hooks, one);
  gradient = std::move(one[0]);
  Tensor& total = parameter.tensor.mutable_grad();
  total = total.defined() ? total.add_(gradient) : gradient;
  rush::detail::claim_memory(total, MemoryUse::Gradient);
}

void ShardedUnit::drop_gradients() noexcept {
  for (Parameter& p : parameters_) p.gradient.reset();
  reduced_ = {};
}

}  // namespace rush::nn::parallel
