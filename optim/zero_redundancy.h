// ZeroRedundancyOptimizer: each process of a group keeps the optimiser's state of its part of the parameters.
#pragma once
#include <utility>
#include <vector>

#include "core/distributed/init.h"
#include "core/distributed/join.h"
#include "optim/optimizer.h"

namespace rush::optim {

namespace detail {

// The parameters' owners, members of the group: each in turn is the one with the fewest elements yet.
std::vector<int> owners_of(const std::vector<Tensor>& params, const distributed::Group& group);
// Those of this process. Throws as the optimiser that is made of them.
std::vector<Tensor> own_params(const std::vector<Tensor>& params, const distributed::Group& group);
// Each parameter becomes what it is on its owner.
void take_from_owners(const std::vector<Tensor>& params, const distributed::Group& group);

}  // namespace detail

/// An optimiser `Base`, of which each process steps its own part of the parameters, and sends them to the others: the
/// states of a process take the memory of all, divided by the number of processes (ZeRO-1; Rajbhandari et al. 2020).
/// Parameters and gradients are the same on all before a step, as DistributedDataParallel leaves them, and the
/// parameters after it are bit for bit those of `Base`, where it steps each parameter by itself. Options, schedules and
/// the state dict are those of this process's part. Every process calls step(); under a distributed::Join also a
/// process without batches steps its part.
///   rush::optim::ZeroRedundancyOptimizer<rush::optim::AdamW> optimizer(net->parameters(),
///   rush::optim::AdamWOptions(1e-3));
/// Every process makes it with parameters of the same shapes, in the same order; else all throw DistributedError.
/// Throws ValueError where there are more processes than parameters. torch.distributed.optim.ZeroRedundancyOptimizer.
template <class Base>
class ZeroRedundancyOptimizer : public Base, public distributed::Joinable {
 public:
  template <class Options>
  ZeroRedundancyOptimizer(std::vector<Tensor> params, Options options, distributed::Group group = distributed::world())
      : Base(detail::own_params(params, group), std::move(options)),
        all_params_(std::move(params)),
        group_(std::move(group)) {}

  Tensor step(typename Base::LossClosure closure = nullptr) override {
    Tensor loss = Base::step(std::move(closure));
    announce(0);
    detail::take_from_owners(all_params_, group_);
    return loss;
  }
  /// Of all parameters, as Optimizer::zero_grad.
  void zero_grad(bool set_to_none = true) { detail::zero_grads(all_params_, set_to_none); }

 private:
  const distributed::Group& join_group() const override { return group_; }
  void shadow(const distributed::Attendance&) override {
    Base::step(nullptr);
    detail::take_from_owners(all_params_, group_);
  }

  std::vector<Tensor> all_params_;
  const distributed::Group group_;
};

}  // namespace rush::optim
