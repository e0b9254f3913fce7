#include "autograd/compile/graph_module.h"

#include <algorithm>
#include <set>

#include "autograd/compile/lowering.h"
#include "autograd/compile/program.h"
#include "autograd/compile/tracer.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/profiler/flops.h"
#include "core/str.h"

namespace rush {

Graph make_fx(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
              const std::vector<Tensor>& inputs) {
  compiler::Tracer tracer(inputs);
  tracer.run([&] { return function(inputs); });
  RUSH_CHECK(tracer.obstacle().empty(), "make_fx: the function cannot be a graph: ", tracer.obstacle());
  return tracer.take_graph();
}

GraphModule::GraphModule(Graph graph) : program_(std::make_unique<compiler::Program>(std::move(graph))) {}
GraphModule::~GraphModule() = default;
GraphModule::GraphModule(GraphModule&&) noexcept = default;
GraphModule& GraphModule::operator=(GraphModule&&) noexcept = default;

const Graph& GraphModule::graph() const { return program_->graph(); }

std::vector<Tensor> GraphModule::operator()(const std::vector<Tensor>& inputs) {
  RUSH_CHECK_VALUE(inputs.size() == graph().inputs.size(), "GraphModule: got ", inputs.size(),
                   " inputs, the graph has ", graph().inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Graph::TensorInfo& info = graph().info(graph().inputs[i]);
    const Tensor& t = inputs[i];
    RUSH_CHECK_VALUE(
        t.defined() && info.has_geometry_of(t) && t.scalar_type() == info.dtype && t.device() == info.device,
        "GraphModule: input ", i, " is not like ", graph().describe(graph().inputs[i]), " of the trace");
  }
  return program_->run(inputs);
}

Graph::Argument tensor_argument(Graph::Id id) { return {Tensor(), {id}}; }

std::vector<Graph::Id> insert_call(Graph& graph, size_t at, std::string_view op,
                                   std::vector<Graph::Argument> arguments) {
  RUSH_CHECK_INDEX(at <= graph.calls.size(), "insert_call: there is no call ", at, " of ", graph.calls.size());
  const OpBase* const called = registry().find(op);
  RUSH_CHECK_NOT_IMPLEMENTED(called, "insert_call: there is no operator named '", op, "'");
  Stack stack;
  for (const Graph::Argument& each : arguments) {
    for (const Graph::Id id : each.tensors) {
      RUSH_CHECK_INDEX(id >= Graph::kNone && id < static_cast<Graph::Id>(graph.tensors.size()),
                       "insert_call: the graph has no tensor %", id);
    }
    stack.push_back(compiler::on_meta(each, graph));
  }
  stack = Schema::parse(called->schema()).bind(std::move(stack), {});
  arguments.resize(stack.size());
  for (size_t i = 0; i < stack.size(); ++i) {
    if (arguments[i].tensors.empty()) arguments[i].value = stack[i];
  }
  called->call_boxed(stack);
  Graph::Call call{.op = called, .name = std::string(called->name()), .arguments = std::move(arguments)};
  RUSH_CHECK_VALUE(!call.arguments.empty() && !call.arguments[0].tensors.empty(), "insert_call: the first argument of ",
                   op, " is no tensor of the graph");
  RUSH_CHECK_VALUE(call.argument(0) != Graph::kNone, "insert_call: the first argument of ", op, " is undefined");
  const Device device = graph.info(call.argument(0)).device;
  std::vector<Graph::Id> made;
  for (const Value& value : stack) {
    RUSH_CHECK_TYPE(value.is<Tensor>(), "insert_call: ", op, " gives a ", value.kind(), ", not a Tensor");
    const Tensor& t = value.as<Tensor>();
    made.push_back(graph.add({t.sizes(), t.strides(), t.storage_offset(), t.scalar_type(), device}));
    call.results.push_back(tensor_argument(made.back()));
  }
  graph.calls.insert(graph.calls.begin() + static_cast<std::ptrdiff_t>(at), std::move(call));
  return made;
}

namespace {

// What calls from `at` on, or these outputs, read of what inputs and earlier calls hold.
std::vector<Graph::Id> read_from_before(const Graph& graph, size_t at, const std::vector<Graph::Id>& outputs) {
  std::set<Graph::Id> own = {Graph::kNone}, before;
  for (const Graph::Constant& constant : graph.constants) own.insert(constant.id);
  for (const Graph::Gradient& each : graph.earlier_gradients) own.erase(each.gradient);
  const auto read = [&](Graph::Id id) {
    if (!own.contains(id)) before.insert(id);
  };
  for (size_t i = at; i < graph.calls.size(); ++i) {
    std::ranges::for_each(Graph::tensors_of(graph.calls[i].arguments), read);
    for (const Graph::Id id : Graph::tensors_of(graph.calls[i].results)) own.insert(id);
  }
  std::ranges::for_each(outputs, read);
  return {before.begin(), before.end()};
}

}  // namespace

std::pair<Graph, Graph> split(const Graph& graph, size_t at) {
  RUSH_CHECK_INDEX(at <= graph.calls.size(), "split: there is no call ", at, " of ", graph.calls.size());
  RUSH_CHECK_VALUE(!graph.backward && graph.gradients.empty(), "split: the graph has a backward pass");
  Graph first = graph, second = graph;
  first.calls.resize(at);
  second.calls.erase(second.calls.begin(), second.calls.begin() + static_cast<std::ptrdiff_t>(at));
  second.earlier_gradients.clear();  // the first part hands on what it found
  first.outputs = second.inputs = read_from_before(graph, at, graph.outputs);
  return {std::move(first), std::move(second)};
}

double flops(const Graph& graph, const Graph::Call& call) {
  if (!call.op || call.results.empty() || call.results[0].tensors.size() != 1) return 0;
  Stack stack;
  for (const Graph::Argument& each : call.arguments) stack.push_back(compiler::on_meta(each, graph));
  const auto elements = static_cast<double>(checked_numel(graph.info(call.result()).sizes));
  return elements * profiler::flops_per_result(*call.op, stack);
}

}  // namespace rush
