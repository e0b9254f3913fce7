#include "nn/graphs/graphed_callables.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/amp/autocast.h"
#include "core/device/backend.h"
#include "core/error/error.h"
#include "core/ops/factory/factories.h"

namespace rush::graphs {

static std::vector<Tensor> those_with_gradients(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> some;
  for (const Tensor& t : tensors) {
    if (t.requires_grad()) some.push_back(t);
  }
  return some;
}

namespace detail {

struct CallableGraphs {
  std::vector<Tensor> inputs;        // what the forward graph reads; leaves
  std::vector<Tensor> parameters;    // that require a gradient
  std::vector<Tensor> outputs;       // what it writes, without history
  std::vector<size_t> with_grad;     // which of the outputs have gradients
  std::vector<Tensor> grad_outputs;  // what the backward graph reads: the gradients of those
  std::vector<Tensor> grad_inputs;   // what it writes: of the inputs that require a gradient, then of the parameters
  Graph forward, backward;           // destroyed before the tensors
  uint64_t calls = 0;

  // What gradients are asked for.
  std::vector<Tensor> sources() const {
    std::vector<Tensor> all = those_with_gradients(inputs);
    all.insert(all.end(), parameters.begin(), parameters.end());
    return all;
  }
};

}  // namespace detail

namespace {

using detail::CallableGraphs;

std::vector<Tensor> ones_for(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> ones;
  for (const Tensor& output : outputs) ones.push_back(ones_like(output.detach()));
  return ones;
}

// Everything that is made once is made here, on the stream that is captured afterwards.
void warm_up(const GraphedCallable::Function& function, const CallableGraphs& graphs,
             const GraphedCallableOptions& options) {
  const std::vector<Tensor> sources = graphs.sources();
  for (int i = 0; i < options.num_warmup_iters; ++i) {
    const std::vector<Tensor> outputs = those_with_gradients(function(graphs.inputs));
    if (outputs.empty() || sources.empty()) continue;
    autograd::grad(outputs, sources, ones_for(outputs), std::nullopt, false, options.allow_unused_input);
  }
}

void capture_both(const GraphedCallable::Function& function, CallableGraphs& graphs,
                  const GraphedCallableOptions& options) {
  std::vector<Tensor> outputs;
  {
    const Capture capture(graphs.forward, options.pool);
    outputs = function(graphs.inputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    graphs.outputs.push_back(outputs[i].detach());
    if (outputs[i].requires_grad()) graphs.with_grad.push_back(i);
  }
  const std::vector<Tensor> differentiable = those_with_gradients(outputs), sources = graphs.sources();
  if (differentiable.empty() || sources.empty()) return;
  graphs.grad_outputs = ones_for(differentiable);
  const Capture capture(graphs.backward, graphs.forward.pool());
  graphs.grad_inputs =
      autograd::grad(differentiable, sources, graphs.grad_outputs, std::nullopt, false, options.allow_unused_input);
}

struct GraphedBackward final : Node {
  std::shared_ptr<CallableGraphs> graphs;
  uint64_t call = 0;

  Tensors apply(const Tensors& grads) override {
    RUSH_CHECK_NOT_IMPLEMENTED(!GradMode::is_enabled(),
                               "make_graphed_callables: gradients of gradients are not available");
    RUSH_CHECK(call == graphs->calls,
               "make_graphed_callables: backward() of a call after which the graph was called again");
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined()) {
        graphs->grad_outputs[i].copy_(grads[i]);
      } else {
        graphs->grad_outputs[i].zero_();
      }
    }
    graphs->backward.replay();
    Tensors results;
    for (const Tensor& grad : graphs->grad_inputs) results.push_back(grad.defined() ? grad.detach() : Tensor());
    return results;
  }
};

void check_like_sample(size_t i, const Tensor& arg, const Tensor& sample) {
  RUSH_CHECK_VALUE(arg.defined() && arg.sizes() == sample.sizes() && arg.scalar_type() == sample.scalar_type(),
                   "make_graphed_callables: argument ", i, " must be ", sample.scalar_type(), " of shape ",
                   sample.sizes(), " as its sample was, got ",
                   arg.defined() ? str(arg.scalar_type(), " of shape ", arg.sizes()) : "none");
  RUSH_CHECK_VALUE(!arg.requires_grad() || sample.requires_grad() || !GradMode::is_enabled(),
                   "make_graphed_callables: argument ", i, " requires a gradient, and its sample did not");
}

}  // namespace

GraphedCallable::GraphedCallable(const Function& function, const std::vector<Tensor>& sample_args,
                                 const std::vector<Tensor>& parameters, const GraphedCallableOptions& options)
    : graphs_(std::make_shared<CallableGraphs>()) {
  RUSH_CHECK_VALUE(options.num_warmup_iters >= 1, "make_graphed_callables: num_warmup_iters must be at least 1, got ",
                   options.num_warmup_iters);
  RUSH_CHECK_VALUE(!sample_args.empty(), "make_graphed_callables: there are no sample arguments");
  for (const Tensor& sample : sample_args) {
    RUSH_CHECK_VALUE(sample.defined() && sample.device().is_accelerator(),
                     "make_graphed_callables: a sample is not on a GPU");
    graphs_->inputs.push_back(sample.detach().requires_grad_(sample.requires_grad()));
  }
  graphs_->parameters = those_with_gradients(parameters);
  const DeviceGuard device(sample_args[0].device());
  const Stream caller = current_stream(accelerator()), side = capture_stream();
  wait_stream(side, caller);
  {
    const EnableGradGuard recording;
    const StreamGuard guard(side);
    autocast::clear_cache();
    warm_up(function, *graphs_, options);
    autocast::clear_cache();
    capture_both(function, *graphs_, options);
    autocast::clear_cache();
  }
  wait_stream(caller, side);
}

std::vector<Tensor> GraphedCallable::forward(const std::vector<Tensor>& args) const {
  CallableGraphs& graphs = *graphs_;
  RUSH_CHECK_VALUE(args.size() == graphs.inputs.size(), "make_graphed_callables: expected ", graphs.inputs.size(),
                   " arguments, got ", args.size());
  for (size_t i = 0; i < args.size(); ++i) check_like_sample(i, args[i], graphs.inputs[i]);
  auto node = make_intrusive<GraphedBackward>();
  node->graphs = graphs_;
  node->call = ++graphs.calls;
  {
    const NoGradGuard no_grad;
    for (size_t i = 0; i < args.size(); ++i) graphs.inputs[i].copy_(args[i], /*non_blocking=*/true);
    graphs.forward.replay();
  }
  std::vector<Tensor> results;
  for (const Tensor& output : graphs.outputs) {
    output.bump_version();  // what others saved of the last call is gone
    results.push_back(output.detach());
    results.back().impl()->set_view(nullptr, ViewOrigin::None);
  }
  if (!GradMode::is_enabled() || graphs.grad_inputs.empty()) return results;
  for (size_t i = 0; i < args.size(); ++i) {
    if (graphs.inputs[i].requires_grad()) node->add_next_edge(gradient_edge(args[i]));
  }
  for (const Tensor& parameter : graphs.parameters) node->add_next_edge(gradient_edge(parameter));
  for (size_t i : graphs.with_grad) set_history(results[i], node);
  return results;
}

}  // namespace rush::graphs
