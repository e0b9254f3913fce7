// DistributedDataParallel: a module whose copies on several processes train as one.
#pragma once
#include <optional>
#include <tuple>
#include <utility>

#include "core/distributed/join.h"
#include "nn/arg.h"
#include "nn/module.h"
#include "nn/parallel/comm_hooks.h"

namespace rush::nn {

namespace parallel {

class Reducer;  // in the .cpp: see Note [Gradient buckets]

/// The keyword arguments of torch.nn.parallel.DistributedDataParallel.
struct DistributedDataParallelOptions {
  /// The processes that train together; null: all.
  RUSH_ARG(distributed::Group, process_group);
  /// The size of a bucket, in MiB: Note [Gradient buckets].
  RUSH_ARG(double, bucket_cap_mb) = 25;
  /// Whether each forward pass in training begins with the buffers of the first process.
  RUSH_ARG(bool, broadcast_buffers) = true;
  /// Whether the output need not depend on every parameter. One that no process has used keeps its gradient.
  RUSH_ARG(bool, find_unused_parameters) = false;
  /// Whether the output depends on the same parameters in each forward pass of this process. It may leave some out, as
  /// with find_unused_parameters, but processes tell each other in the first backward pass alone which those are.
  RUSH_ARG(bool, static_graph) = false;
};

namespace detail {

// The tensors of what a forward function returns.
inline void collect(const Tensor& value, std::vector<Tensor>& tensors) { tensors.push_back(value); }
template <class T>
void collect(const std::optional<T>& value, std::vector<Tensor>& tensors) {
  if (value) collect(*value, tensors);
}
template <class T>
void collect(const std::vector<T>& values, std::vector<Tensor>& tensors) {
  for (const T& value : values) collect(value, tensors);
}
template <class... T>
void collect(const std::tuple<T...>& values, std::vector<Tensor>& tensors) {
  std::apply([&](const auto&... each) { (collect(each, tensors), ...); }, values);
}

// What is the same for all modules.
class DistributedModule : public Module, public distributed::Joinable {
 public:
  /// Until its end, backward passes add gradients up on this process alone. The next one after it sends what has come
  /// together.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(std::shared_ptr<Reducer> reducer);
    ~NoSync();
    NoSync(const NoSync&) = delete;

   private:
    const std::shared_ptr<Reducer> reducer_;
    const bool before_;
  };

  /// auto guard = ddp->no_sync(); for the micro-batches of a step but the last. Forward passes go inside, too.
  NoSync no_sync() const { return NoSync(reducer_); }
  /// A guard around a loop over batches, of which processes may have unequally many: Note [Uneven inputs]. For an
  /// optimiser that calls collectives as well, make a Join of both. SyncBatchNorm and other modules that call
  /// collectives cannot be joined. Throws Error under another Join, and its end as distributed::Join.
  ///   const auto joined = net->join();
  ///   for (const auto& [x, y] : batches) { ... }
  distributed::Join join(const distributed::JoinOptions& options = {}) { return distributed::Join({this}, options); }
  /// Has buckets travel by `hook` from now on, as bf16_compress_hook.
  void register_comm_hook(CommHook hook);
  size_t num_buckets() const;  // in which gradients travel

 protected:
  DistributedModule(const Module& module, const DistributedDataParallelOptions& options);
  void begin_forward(const Module& module);
  void end_forward(const std::vector<Tensor>& outputs);

 private:
  enum Action { kTakeBuffers, kReduceGradients };
  const distributed::Group& join_group() const override { return group_; }
  void shadow(const distributed::Attendance& others) override;
  void end_join(int source) override;

  const distributed::Group group_;
  const bool broadcasts_buffers_;
  std::shared_ptr<Reducer> reducer_;
};

}  // namespace detail

/// The implementation of DistributedDataParallel.
template <class M>
class DistributedDataParallelImpl final : public detail::DistributedModule {
 public:
  explicit DistributedDataParallelImpl(std::shared_ptr<M> module, const DistributedDataParallelOptions& options = {})
      : DistributedModule(*module, options), module_(this->register_module("module", std::move(module))) {}

  /// The module's own. Its result is a tensor, or a vector, a tuple or an optional of results.
  template <class... Args>
  auto forward(Args&&... args) {
    begin_forward(*module_);
    const ModuleScope scope(*module_);
    auto result = module_->forward(std::forward<Args>(args)...);
    std::vector<Tensor> outputs;
    detail::collect(result, outputs);
    end_forward(outputs);
    return result;
  }

  const std::shared_ptr<M>& module() const { return module_; }  // that it was made of

 private:
  const std::shared_ptr<M> module_;
};

}  // namespace parallel

/// A module with which each process of a group computes its own batch, and of whose parameters all have the mean of
/// their gradients after a backward pass: so equal optimisers keep the copies equal, and a step is one with all batches
/// together. When it is made, parameters and buffers become those of the first process. Gradients travel while the
/// backward pass goes on, and are views of buckets: Note [Gradient buckets]. Every process calls forward and backward
/// equally often.
///   auto net = rush::nn::DistributedDataParallel(Net());
///   rush::optim::SGD optimizer(net->parameters(), 0.1);
///   loss(net(x), y).backward();
///   optimizer.step();
/// Throws DistributedError where there is no process group, or the processes' parameters differ in shape or dtype.
/// torch.nn.parallel.DistributedDataParallel.
template <class M>
class DistributedDataParallel : public ModuleHolder<parallel::DistributedDataParallelImpl<M>> {
 public:
  using Impl = parallel::DistributedDataParallelImpl<M>;

  DistributedDataParallel(std::nullptr_t) : ModuleHolder<Impl>(nullptr) {}
  explicit DistributedDataParallel(const ModuleHolder<M>& module,
                                   const parallel::DistributedDataParallelOptions& options = {})
      : DistributedDataParallel(module.ptr(), options) {}
  explicit DistributedDataParallel(std::shared_ptr<M> module,
                                   const parallel::DistributedDataParallelOptions& options = {})
      : ModuleHolder<Impl>(std::make_shared<Impl>(std::move(module), options)) {}
};

}  // namespace rush::nn
