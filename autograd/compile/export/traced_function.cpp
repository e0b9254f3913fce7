// compiler::trace_function: Note [Traces for export].
#include <algorithm>
#include <array>
#include <map>

#include "autograd/compile/export/export.h"
#include "autograd/compile/graph_dump.h"
#include "autograd/grad_mode.h"
#include "core/geometry.h"
#include "core/ops/factory/range.h"
#include "core/ops/index/index_select.h"
#include "core/ops/pointwise/ternary.h"
#include "core/ops/view/copy.h"

namespace rush::compiler {

namespace {

constexpr size_t kTraces = 3;

// The sizes that a dimension has in the traces, where it has `size` in the example: smaller ones, so that a function
// with a longest input takes them, unless that leaves too little. `number`, of the dimension's name, tells dimensions
// apart: no two sizes differ from trace to trace in the same ratio.
std::array<int64_t, kTraces> traced_sizes(int64_t size, int64_t number, int64_t multiple) {
  const int64_t second = number * multiple, third = second * (number + 2);
  if (size - third >= 2) return {size, size - second, size - third};
  const int64_t first = std::max<int64_t>(size, 2);
  return {first, first + second, first + third};
}

// The first `size` elements along `dim`; where there are fewer, the last one again.
Tensor with_size(const Tensor& input, int64_t dim, int64_t size) {
  const Tensor places = arange(size, TensorOptions(kInt64).device(input.device()));
  return index_select(input, dim, clamp_max(places, input.size(dim) - 1));
}

// The inputs of each trace.
std::array<std::vector<Tensor>, kTraces> traced_inputs(const char* who, const std::vector<Tensor>& inputs,
                                                       const std::vector<DynamicDim>& dynamic) {
  std::array<std::vector<Tensor>, kTraces> traced = {inputs, inputs, inputs};
  std::map<std::string, std::pair<int64_t, std::array<int64_t, kTraces>>> known_sizes;
  for (const DynamicDim& each : dynamic) {
    RUSH_CHECK_VALUE(each.input < inputs.size(), who, ": there is no input ", each.input, " for the dimension '",
                     each.name, "', but ", inputs.size(), " inputs");
    const int64_t dim = wrap_dim(each.dim, inputs[each.input].dim(), who), size = inputs[each.input].size(dim);
    RUSH_CHECK_VALUE(size > 0, who, ": the dimension '", each.name, "' of input ", each.input,
                     " is empty in the example");
    RUSH_CHECK_VALUE(each.multiple > 0 && size % each.multiple == 0, who, ": the dimension '", each.name, "' has size ",
                     size, " in the example, no multiple of ", each.multiple);
    const auto number = static_cast<int64_t>(known_sizes.size() + 1);
    const auto& known =
        known_sizes.emplace(each.name, std::pair(size, traced_sizes(size, number, each.multiple))).first->second;
    RUSH_CHECK_VALUE(known.first == size, who, ": the dimension '", each.name, "' has sizes ", known.first, " and ",
                     size, " in the example");
    for (size_t i = 0; i < kTraces; ++i) traced[i][each.input] = with_size(traced[i][each.input], dim, known.second[i]);
  }
  return traced;
}

Graph trace_once(const char* who, const Function& function, const std::vector<Tensor>& inputs,
                 Tracer::TakesWhole takes_whole) {
  Tracer tracer(inputs, takes_whole);
  const std::vector<Tensor> outputs = tracer.run([&] { return function(inputs); });
  RUSH_CHECK_NOT_IMPLEMENTED(tracer.obstacle().empty(), who, ": the function cannot be exported: ", tracer.obstacle());
  RUSH_CHECK_VALUE(std::ranges::all_of(outputs, &Tensor::defined), who, ": the function returns an undefined tensor");
  Graph graph = tracer.take_graph();
  const auto is_host_call = [](const Graph::Call& call) { return !call.op; };
  const bool trains = !graph.gradients.empty() || std::ranges::any_of(graph.calls, is_host_call);
  RUSH_CHECK_NOT_IMPLEMENTED(!trains, who,
                             ": the function cannot be exported: it sets gradients or steps an optimiser");
  remove_dead_calls(graph);
  return graph;
}

// What the function makes of its own numbers at each call, such as tensor({0.5f}), counts as one constant.
void share_constants(const Graph& first, Graph& other) {
  for (size_t i = 0; i < std::min(first.constants.size(), other.constants.size()); ++i) {
    const Tensor &known = first.constants[i].tensor, &made = other.constants[i].tensor;
    const bool is_alike = made.scalar_type() == known.scalar_type() && made.device() == known.device();
    if (is_alike && made.equal(known)) other.constants[i].tensor = known;
  }
}

}  // namespace

Pattern trace_function(const char* who, const Function& function, const std::vector<Tensor>& inputs,
                       const std::vector<DynamicDim>& dynamic, Tracer::TakesWhole takes_whole) {
  std::vector<Tensor> examples;
  for (size_t i = 0; i < inputs.size(); ++i) {
    RUSH_CHECK_VALUE(inputs[i].defined(), who, ": input ", i, " is undefined");
    examples.push_back(clone(inputs[i].detach(), MemoryFormat::Contiguous));  // no two share memory
  }
  const NoGradGuard no_grad;
  const DispatchStateGuard below(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast);
  function(examples);  // so that what it makes at its first call is there
  const auto traced = traced_inputs(who, examples, dynamic);
  const Graph first = trace_once(who, function, traced[0], takes_whole);
  if (dynamic.empty()) return Pattern(first, {});
  Graph second = trace_once(who, function, traced[1], takes_whole);
  share_constants(first, second);
  std::optional<Pattern> pattern = Pattern::of(first, second, Pattern::Unknown::LeftInTensors);
  Graph third = trace_once(who, function, traced[2], takes_whole);
  share_constants(first, third);
  RUSH_CHECK_VALUE(pattern && pattern->check(traced[2], third), who,
                   ": the function does not do the same at all sizes: it was called with inputs of sizes ",
                   joined(traced[0], &Tensor::sizes), "; of ", joined(traced[1], &Tensor::sizes), "; and of ",
                   joined(traced[2], &Tensor::sizes));
  return *pattern;
}

}  // namespace rush::compiler
