// Takes calls apart into element-wise ones and reductions of rows: Note [Decompositions].
#include <algorithm>
#include <map>
#include <utility>

#include "autograd/compile/fusion_group.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/traced_part.h"
#include "autograd/compile/uses.h"
#include "core/ops/basic.h"
#include "core/ops/index/index_select.h"
#include "core/ops/nn/norm.h"

namespace rush::compiler {

namespace {

// In what kernels compute.
Tensor raised(const Tensor& t) { return t.element_size() < 4 ? t.to(kFloat32) : t; }

// Undefined where the call has none.
Tensor tensor_of(const Value& value) { return value.is_none() ? Tensor() : value.as<Tensor>(); }

// A number for each channel, (C), as if it were one for each element of x.
Tensor for_each_element(const Tensor& t, const Tensor& x) {
  DimVector sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = x.size(1);
  return raised(t.view(sizes).expand_as(x));
}

// The first of the results of aten::native_batch_norm with running statistics; nothing in training. The loop takes its
// order in memory from what is read first, x.
std::vector<Tensor> batch_norm(const Stack& arguments) {
  const Tensor x = tensor_of(arguments[0]), weight = tensor_of(arguments[1]), bias = tensor_of(arguments[2]);
  if (arguments[5].as<bool>()) return {};
  const Tensor centred = raised(x) - for_each_element(tensor_of(arguments[3]), x);
  Tensor scale = (for_each_element(tensor_of(arguments[4]), x) + arguments[7].as<double>()).rsqrt();
  if (weight.defined()) scale = scale * for_each_element(weight, x);
  Tensor y = centred * scale;
  if (bias.defined()) y = y + for_each_element(bias, x);
  return {y.to(x.scalar_type())};
}

// The results of aten::_fused_rms_norm over one dimension.
std::vector<Tensor> rms_norm(const Stack& arguments) {
  const Tensor x = tensor_of(arguments[0]), weight = tensor_of(arguments[2]);
  if (arguments[1].as<std::vector<int64_t>>().size() != 1 || !x.is_contiguous()) return {};
  const std::optional<double> eps = arguments[3].is_none() ? std::nullopt : std::optional(arguments[3].as<double>());
  const Tensor wide = raised(x);
  const Tensor rstd = ((wide * wide).mean(-1, true) + detail::rms_norm_eps(x.scalar_type(), eps)).rsqrt();
  const Tensor y = wide * rstd;
  return {(weight.defined() ? y * raised(weight.expand_as(x)) : y).to(x.scalar_type()), rstd};
}

// The results of aten::native_layer_norm over one dimension.
std::vector<Tensor> layer_norm(const Stack& arguments) {
  const Tensor x = tensor_of(arguments[0]), weight = tensor_of(arguments[2]), bias = tensor_of(arguments[3]);
  if (arguments[1].as<std::vector<int64_t>>().size() != 1 || !x.is_contiguous()) return {};
  const Tensor wide = raised(x), mean = wide.mean(-1, true), centred = wide - mean;
  const Tensor rstd = ((centred * centred).mean(-1, true) + arguments[4].as<double>()).rsqrt();
  Tensor y = centred * rstd;
  if (weight.defined()) y = y * raised(weight.expand_as(x));
  if (bias.defined()) y = y + raised(bias.expand_as(x));
  return {y.to(x.scalar_type()), mean, rstd};
}

// The result of aten::index_add of what is not scaled.
std::vector<Tensor> index_add(const Stack& arguments) {
  const Tensor self = tensor_of(arguments[0]), index = tensor_of(arguments[2]);
  const auto dim = arguments[1].as<int64_t>();
  if (!is_same(arguments[4], 1)) return {};
  const Tensor order = ops::index_order(index, self.dim() == 0 ? 1 : self.size(dim));
  return {ops::index_add_in_order(self, dim, index, tensor_of(arguments[3]), order)};
}

using Decomposition = std::vector<Tensor> (*)(const Stack& arguments);

Decomposition decomposition_of(const OpBase* op) {
  if (op == &ops::native_batch_norm) return batch_norm;
  if (op == &ops::_fused_rms_norm) return rms_norm;
  if (op == &ops::native_layer_norm) return layer_norm;
  if (op == &ops::index_add) return index_add;
  return nullptr;
}

// What the call consists of, as calls of the graph; nothing where it stays whole.
std::vector<Graph::Call> parts_of(Graph& graph, const Graph::Call& call) {
  const Decomposition decomposition = decomposition_of(call.op);
  if (!decomposition) return {};
  std::vector<Graph::Id> results;
  for (const Graph::Argument& each : call.results) results.push_back(each.id());
  size_t made = 0;
  const auto parts = [&](const std::vector<Tensor>& tensors) {
    Stack arguments;
    for (auto next = tensors.begin(); const Graph::Argument& each : call.arguments) {
      arguments.push_back(each.id() == Graph::kNone ? on_meta(each, graph) : Value(*next++));
    }
    std::vector<Tensor> outputs = decomposition(arguments);
    made = outputs.size();
    return outputs;
  };
  std::vector<Graph::Call> calls = traced_calls(graph, Graph::tensors_of(call.arguments), results, parts);
  const Uses uses(graph);
  for (size_t i = made; i < results.size(); ++i) {
    if (!uses.readers(results[i]).empty() || uses.is_seen_outside(results[i])) return {};
  }
  return calls;
}

// Whether the call goes into a loop, and its sums of rows into one with the others.
bool fits_a_loop(const Graph& graph, const Graph::Call& call) {
  if (call.op->is_view()) return true;
  const std::optional<std::vector<LoweredKernel>> kernels = fusible_kernels(graph, call);
  return kernels && std::ranges::all_of(*kernels, [&](const LoweredKernel& kernel) {
           return !kernel.reduces() ||
                  suits_rows(kernel.sizes, element_size(kernel.operands[1].dtype), graph.info(call.result()).device);
         });
}

}  // namespace

bool decompose(Graph& graph, size_t at) {
  std::vector<Graph::Call> parts = parts_of(graph, graph.calls[at]);
  if (parts.empty() || !std::ranges::all_of(parts, [&](const Graph::Call& each) { return fits_a_loop(graph, each); }))
    return false;
  exchange_calls(graph, {{at, std::move(parts)}});
  return true;
}

void decompose_calls(Graph& graph) {
  for (size_t i = graph.calls.size(); i-- > 0;) {
    const Graph::Call& call = graph.calls[i];
    if (decomposition_of(call.op) && graph.info(call.argument(0)).device.is_accelerator()) decompose(graph, i);
  }
}

void find_orders_once(Graph& graph) {
  const Uses uses(graph);
  const auto adds = [&](size_t i) { return graph.calls[i].op == &ops::index_add; };
  std::map<size_t, std::vector<Graph::Call>> instead;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (!adds(i)) continue;
    const Graph::Id self = graph.calls[i].argument(0), index = graph.calls[i].argument(2);
    const bool is_shared = std::ranges::count_if(uses.readers(index), adds) > 1;
    if (!is_shared || graph.info(index).device != graph.info(self).device) continue;
    if (std::vector<Graph::Call> parts = parts_of(graph, graph.calls[i]); !parts.empty()) instead[i] = std::move(parts);
  }
  exchange_calls(graph, std::move(instead));
}

}  // namespace rush::compiler
