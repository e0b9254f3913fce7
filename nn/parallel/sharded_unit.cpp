#include "nn/parallel/sharded_unit.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/ready_nodes.h"
#include "core/device/backend.h"
#include "core/distributed/collectives.h"
#include "core/memory/claim.h"
#include "core/ops/basic.h"
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

// Calls copy(rows, block) for the rows of a whole parameter and their place in `flat` (processes, n), from element
// `start` of each block on: (full, chunk, ...) for the processes that have a full chunk, then what the next one has.
template <class Copy>
void match_blocks(const ShardedUnit::Parameter& p, const Tensor& whole, const Tensor& flat, int64_t start,
                  const Copy& copy) {
  if (whole.numel() == 0) return;
  const int64_t full = p.rows() / p.chunk, rest = p.rows() % p.chunk;
  std::vector<int64_t> sizes{full, p.chunk};
  sizes.insert(sizes.end(), p.sizes.begin() + 1, p.sizes.end());
  const Tensor blocks = flat.narrow(1, start, p.chunk_numel());
  copy(whole.narrow(0, 0, full * p.chunk).unflatten(0, {full, p.chunk}), blocks.narrow(0, 0, full).view(sizes));
  if (rest == 0) return;
  const Tensor last = whole.narrow(0, full * p.chunk, rest);
  copy(last, blocks.select(0, full).narrow(0, 0, rest * p.row_numel).view(last.sizes()));
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
    p.start = block_numel_;
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
  const Tensor own = flat(1, block_numel_, dtype).flatten();
  for (const Parameter& p : parameters_) {
    own.narrow(0, p.start, p.tensor.numel()).view(p.tensor.sizes()).copy_(p.tensor.detach());
  }
  const Tensor all = flat(group_->size(), block_numel_, dtype);
  gathered_ = {all, distributed::all_gather_into_tensor(all, own, group_, /*async_op=*/true)};
}

void ShardedUnit::finish_gather() {
  begin_gather();
  if (!gathered_.work) return;
  const NoGradGuard no_grad;
  const Tensor gathered = gathered_.take();
  for (Parameter& p : parameters_) {
    const Tensor filled = empty(p.sizes, gathered.options());
    match_blocks(p, filled, gathered, p.start, [](const Tensor& rows, const Tensor& block) { rows.copy_(block); });
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
    const Tensor nothing = empty({0}, p.whole.options());
    p.whole.storage()->swap_memory(*nothing.storage());
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
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].gradient.defined()) continue;
    reducing_.push_back(i);
    numel += parameters_[i].chunk_numel();
  }
  if (reducing_.empty()) return false;
  const ScalarType dtype =
      options_.mp_policy().reduce_dtype().value_or(parameters_[reducing_[0]].gradient.scalar_type());
  const Tensor all = flat(group_->size(), numel, dtype);
  int64_t start = 0;
  for (const size_t i : reducing_) {
    Parameter& p = parameters_[i];
    match_blocks(p, std::exchange(p.gradient, Tensor()), all, start,
                 [](const Tensor& rows, const Tensor& block) { block.copy_(rows); });
    start += p.chunk_numel();
  }
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
    add_to_grad(
        p, reduced.narrow(0, start, own.numel()).view(own.sizes()).to(own.scalar_type()).to(own.device()).detach());
    start += p.chunk_numel();
  }
}

// As an accumulator of the shard would.
void ShardedUnit::add_to_grad(const Parameter& parameter, Tensor gradient) const {
  for (const auto& hook : get_meta(parameter.tensor)->hooks) {
    Tensors one{gradient};
    (*hook)(one);
    gradient = one[0];
  }
  Tensor& total = parameter.tensor.mutable_grad();
  total = total.defined() ? total.add_(gradient) : gradient;
  rush::detail::claim_memory(total, MemoryUse::Gradient);
}

void ShardedUnit::drop_gradients() noexcept {
  for (Parameter& p : parameters_) p.gradient.reset();
  reduced_ = {};
}

}  // namespace rush::nn::parallel
