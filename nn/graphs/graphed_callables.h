// make_graphed_callables: a module or a function as two CUDA graphs, one for its forward and one for its backward pass.
#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/graphs/graph.h"
#include "nn/module.h"
#include "nn/module_holder.h"

namespace rush::graphs {

/// How forward and backward are warmed up and captured.
struct GraphedCallableOptions {
  /// How often forward and backward run before they are captured; at least 1.
  int num_warmup_iters = 3;
  /// Whether arguments and parameters may be unused; their gradients are then undefined.
  bool allow_unused_input = false;
  /// See Graph::capture_begin.
  MempoolId_t pool = 0;
};

namespace detail {
struct CallableGraphs;
}

/// What make_graphed_callables returns: a function of as many tensors as there were sample arguments, with their shapes
/// and dtypes. Copies share the graphs.
class GraphedCallable {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  GraphedCallable(const Function& function, const std::vector<Tensor>& sample_args,
                  const std::vector<Tensor>& parameters, const GraphedCallableOptions& options);

  /// Copies the arguments to where the graph reads them and replays it. The results are overwritten by the next call:
  /// clone them to keep them, and call backward() before. Throws ValueError for arguments that are not like the
  /// samples.
  std::vector<Tensor> forward(const std::vector<Tensor>& args) const;
  /// For one that has one result.
  template <class... Args>
  requires(std::is_convertible_v<const Args&, const Tensor&>&&...) Tensor operator()(const Args&... args) const {
    return forward({static_cast<const Tensor&>(args)...})[0];
  }

 private:
  std::shared_ptr<detail::CallableGraphs> graphs_;
};

/// Captures the forward pass of `function` on `sample_args`, and the backward pass to those of them that require a
/// gradient and to `parameters`, after a warm-up. The result takes part in autograd: its backward pass replays the
/// second graph. Between the two passes, and around them, anything may happen that cannot be captured. The samples are
/// tensors on a GPU whose memory the graphs take over. Gradients of gradients are not available; nor may the function
/// wait for the device. Throws ValueError for samples that are not on a GPU, and CudaError for what cannot be captured.
/// torch.cuda.make_graphed_callables, with a function where Python has any callable.
template <class Function>
requires(!nn::detail::is_module_holder<Function>) GraphedCallable
    make_graphed_callables(const Function& function, const std::vector<Tensor>& sample_args,
                           const std::vector<Tensor>& parameters = {}, const GraphedCallableOptions& options = {}) {
  return GraphedCallable(function, sample_args, parameters, options);
}

/// The same of a module whose forward takes and returns a tensor, and of its parameters. The module must stay in the
/// mode (train, eval) that it is in, and its parameters in their memory.
template <class M>
GraphedCallable make_graphed_callables(const nn::ModuleHolder<M>& module, const Tensor& sample_arg,
                                       const GraphedCallableOptions& options = {}) {
  const auto forward = [module](const std::vector<Tensor>& args) {
    return std::vector<Tensor>{module->forward(args[0])};
  };
  return GraphedCallable(forward, {sample_arg}, module->parameters(), options);
}

}  // namespace rush::graphs
