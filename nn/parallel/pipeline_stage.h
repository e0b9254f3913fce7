// PipelineStage: one of the parts that a net is cut into, each of which some process computes.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/distributed/process_group.h"
#include "nn/modules/container.h"

namespace rush::nn::parallel {

/// Stage `index` of `count`: a function from a tensor, which the stage before makes, to a tensor for the next one,
/// which nobody writes any more. A cheap handle. torch.distributed.pipelining.PipelineStage.
class PipelineStage {
 public:
  using Function = std::function<Tensor(const Tensor& input)>;

  /// Any callable; its inputs come on the group's device. `group` are the processes that have the stages, by default
  /// all; of a mesh, mesh.group("pp"). Throws ValueError unless 0 <= index < count, and for an empty function;
  /// DistributedError where this process is no member of the group.
  PipelineStage(Function forward, int index, int count, distributed::Group group = nullptr);
  /// A module, or a shared pointer to one, whose forward takes a tensor and returns one. Inputs come on the device of
  /// its first parameter.
  template <class M>
  requires(nn::detail::is_module_holder<M> || std::is_convertible_v<M, std::shared_ptr<Module>>)
      PipelineStage(const M& module, int index, int count, distributed::Group group = nullptr)
      : PipelineStage(AnyModule(module), index, count, std::move(group)) {}
  PipelineStage(AnyModule module, int index, int count, distributed::Group group = nullptr);

  int index() const { return index_; }
  int count() const { return count_; }  // of the pipeline's stages
  bool is_first() const { return index_ == 0; }
  bool is_last() const { return index_ == count_ - 1; }
  const distributed::Group& group() const { return group_; }
  const std::shared_ptr<Module>& module() const { return module_; }  // null for another callable
  Device device() const;                                             // on which its inputs are

  Tensor operator()(const Tensor& input) const { return forward_(input); }

 private:
  Function forward_;
  std::shared_ptr<Module> module_;
  int index_, count_;
  distributed::Group group_;
};

/// Cuts a Sequential into stages and returns this process's: of P processes, those of indices rank, rank + P, ... Stage
/// i has the modules from number begins[i] on; begins[0] is 0, and each stage has a module. A stage is a Sequential
/// that shares the modules, under their names in `net`: so keys of state dictionaries stay, and what this process does
/// not need is freed with `net`. Throws ValueError for begins that do not increase so, and where the stages cannot be
/// shared out equally.
std::vector<PipelineStage> split_sequential(const Sequential& net, const std::vector<size_t>& begins,
                                            distributed::Group group = nullptr);
/// The begins of `stages` stages whose modules have about equally many parameters, of modules with so many each. Throws
/// ValueError for more stages than modules.
std::vector<size_t> balanced_begins(const std::vector<double>& counts, int stages);
/// The same with `stages` stages of about equally many parameters. A module without any is in the stage of the one
/// before it, unless modules are too few. Throws ValueError for more stages than modules.
std::vector<PipelineStage> split_sequential(const Sequential& net, int stages, distributed::Group group = nullptr);

}  // namespace rush::nn::parallel
