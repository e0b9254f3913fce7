#include "autograd/compile/tracer.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "autograd/accumulate_grad.h"
#include "autograd/compile/graph_dump.h"
#include "autograd/compile/lowering.h"
#include "autograd/compile/replay.h"
#include "autograd/engine.h"
#include "autograd/saved.h"
#include "core/debug/source_line.h"
#include "core/debug/stack_trace.h"
#include "core/device/generator.h"
#include "core/dispatch/kernel_listener.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factories.h"
#include "core/ops/index/gather.h"
#include "core/ops/index/index.h"
#include "core/ops/index/index_select.h"
#include "core/ops/view/item.h"
#include "core/ops/view/view.h"
#include "core/print/bracketed.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

constinit thread_local Tracer* current_tracer = nullptr;

bool same_place(const Graph::TensorInfo& info, const Tensor& t) {
  return info.has_geometry_of(t) && info.storage_offset == t.storage_offset() && info.dtype == t.scalar_type();
}

// A tensor among a call's arguments, as it was before. Written are those that the schema marks, as "Tensor(a!) self",
// and those whose version the call raises, as the running statistics of a batch norm.
struct SeenArgument {
  Tensor tensor;
  bool is_marked;
  int64_t version;

  bool is_written() const { return is_marked || tensor._version() != version; }
};

std::vector<SeenArgument> seen_arguments(const OpBase& op, const Stack& values) {
  const std::vector<Argument> arguments = Schema::parse(op.schema()).arguments;
  std::vector<SeenArgument> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_marked = i < arguments.size() && arguments[i].is_written;
    for (const Tensor& t : tensors_of(values[i])) {
      if (t.defined() && t.layout() == kStrided) seen.push_back({t, is_marked, t._version()});
    }
  }
  return seen;
}

bool gives_numbers(const Stack& results) {
  return std::ranges::any_of(results, [](const Value& each) { return !holds_tensors(each) && !each.is_none(); });
}

// Whether an operator that gives a number looks at sizes, dtypes and devices alone, as the choice of a kernel for
// attention does: then it can be asked of tensors that have no values.
bool asks_for_no_values(const OpBase& op, const std::vector<Graph::Argument>& arguments, const Graph& graph) {
  Stack stack;
  for (const Graph::Argument& argument : arguments) stack.push_back(on_meta(argument, graph));
  const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer)};
  try {
    op.call_boxed(stack, DispatchKey::Tracer);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool is_sparse_among(const Stack& values) {
  const auto is_sparse = [](const Tensor& tensor) { return tensor.defined() && tensor.layout() != kStrided; };
  return std::ranges::any_of(values,
                             [&](const Value& each) { return std::ranges::any_of(tensors_of(each), is_sparse); });
}

bool is_generator(const Value& value) { return value.is<Generator>() && value.as<Generator>().defined(); }

// Whether the sizes of what the operator gives depend on what its arguments hold: a graph has one size for each tensor.
bool has_sizes_of_values(const OpBase& op, const std::vector<Graph::Argument>& arguments, const Graph& graph) {
  if (!op.has_tag(Tag::DynamicOutputShape)) return false;
  if (&op == &ops::repeat_interleave_Tensor) return arguments[1].value.is_none();
  if (&op == &ops::one_hot) return arguments[1].value.as<int64_t>() < 0;
  if (&op != &ops::index) return true;
  return std::ranges::any_of(arguments[1].tensors, [&](Graph::Id id) {  // masks
    return id != Graph::kNone && (graph.info(id).dtype == kBool || graph.info(id).dtype == kUInt8);
  });
}

// Whether the call made none of the tensors from number `first_new` on: its results are its arguments, or views that
// are there already. A leaf must stay the tensor that it is, since it gets a gradient.
bool made_nothing(const Graph::Call& call, Graph::Id first_new) {
  if (!call.written.empty() || call.is_random) return false;
  // True where it gave no tensor at all, too: a number that does not depend on values.
  return std::ranges::none_of(Graph::tensors_of(call.results), [&](Graph::Id id) { return id >= first_new; });
}

}  // namespace

Tracer* Tracer::current() { return dispatch_state.excluded.has(DispatchKey::Tracer) ? nullptr : current_tracer; }

Tracer::FirstSeen::FirstSeen(const Tensor& tensor)
    : tensor(tensor),
      grad_fn(tensor.grad_fn()),
      requires_grad(tensor.requires_grad()),
      sizes(tensor.sizes()),
      strides(tensor.strides()) {}

Tracer::Tracer(const std::vector<Tensor>& inputs, TakesWhole takes_whole) : inputs_(inputs), takes_whole_(takes_whole) {
  for (const Tensor& input : inputs) {
    graph_.inputs.push_back(add(input));
    first_seen_.emplace_back(input);
  }
}
Tracer::~Tracer() = default;

std::vector<Tensor> Tracer::run(const std::function<std::vector<Tensor>()>& program) {
  RUSH_CHECK(!current_tracer, "compile: a function is being traced already");
  struct Current {
    explicit Current(Tracer* tracer) { current_tracer = tracer; }
    ~Current() { current_tracer = nullptr; }
  } current(this);
  const IncludeDispatchKeyGuard tracing(DispatchKey::Tracer);
  std::vector<Tensor> outputs = program();
  if (!obstacle_.empty()) return outputs;
  for (const Tensor& output : outputs) graph_.outputs.push_back(output.defined() ? id_of(output) : Graph::kNone);
  set_gradients(graph_.gradients);
  const size_t calls = graph_.calls.size(), called = calls_.size();
  std::vector<Graph::Id> still_there = alive();
  if (!ran_backward()) {
    graph_.gradients.clear();
    trace_backward(outputs);
  }
  if (obstacle_.empty()) obstacle_ = what_became_another();
  if (obstacle_.empty()) obstacle_ = what_escaped(outputs);
  if (!obstacle_.empty()) {
    graph_.calls.resize(calls);
    calls_.resize(called);
    graph_.backward.reset();
    graph_.outputs = std::move(still_there);
  }
  held_.clear();
  first_seen_.clear();
  return outputs;
}

void Tracer::trace_call(const OpBase& op, KeySet /*keys*/, Stack& stack) {
  if (kernel_listener) kernel_listener->other(op.schema());  // an operator within the one that is lowered
  if (kernel_listener) return op.call_boxed(stack, DispatchKey::Tracer);
  const bool is_whole = current_tracer && current_tracer->takes_whole_ && current_tracer->takes_whole_(op);
  if (op.is_composite() && !is_whole) return op.call_boxed(stack, DispatchKey::Tracer);
  if (current_tracer) return current_tracer->record(op, stack);
  if (!Replay::answer(op, stack)) op.call_boxed(stack, DispatchKey::Tracer);
}

void Tracer::record(const OpBase& op, Stack& stack) {
  Graph::Call call{.op = &op, .name = std::string(op.name())};
  for (const Value& value : stack) call.arguments.push_back(argument_of(value));
  const bool was_sparse = is_sparse_among(stack), has_generator = std::ranges::any_of(stack, is_generator);
  const std::vector<SeenArgument> seen = seen_arguments(op, stack);
  {
    const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer)};
    const uint64_t drawn = random_numbers_drawn();
    op.call_boxed(stack, DispatchKey::Tracer);
    call.is_random = random_numbers_drawn() != drawn || has_generator;
  }
  has_accumulated_ |= dynamic_cast<const AccumulateGrad*>(current_node) != nullptr;
  if (gives_numbers(stack) && !asks_for_no_values(op, call.arguments, graph_)) {
    const SourceLocation where = &op == &ops::_local_scalar_dense ? detail::item_read_at : SourceLocation();
    const std::string place =
        where.line() ? str(" at ", where.file_name(), ':', where.line()) : str(", in ", op.name());
    return cut(str("it reads a number from a tensor", place), call.arguments);
  }
  if (has_sizes_of_values(op, call.arguments, graph_))
    return cut(str("it makes a tensor whose sizes depend on values, in ", op.name()), call.arguments);
  if (was_sparse || is_sparse_among(stack)) return cut(str("it uses a sparse tensor, in ", op.name()), call.arguments);
  for (const SeenArgument& each : seen) {
    if (each.is_written()) call.written.push_back(id_of(each.tensor));
  }
  const auto first_new = static_cast<Graph::Id>(graph_.tensors.size());
  for (const Value& value : stack) call.results.push_back(result_of(value));
  calls_.push_back(call);
  if (!made_nothing(call, first_new)) graph_.calls.push_back(std::move(call));
  if (held_.size() >= let_go_at_) let_go();
}

void Tracer::host_call(const char* name, const std::vector<Tensor>& leaves, const std::function<void()>& call) {
  for (const Tensor& leaf : leaves) {
    if (leaf.grad().defined()) id_of(leaf);
  }
  std::vector<Graph::Gradient> gradients;
  set_gradients(gradients);
  Graph::Call noted{.host = call, .name = name};
  // They are set before it: their tensors are its arguments, leaf and gradient in turn.
  for (const Graph::Gradient& each : gradients) {
    noted.arguments.push_back({Value(), {each.leaf, each.gradient}});
    noted.written.push_back(each.leaf);
  }
  calls_.push_back(noted);
  graph_.calls.push_back(std::move(noted));
  const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer)};
  call();
}

bool host_call(const char* name, const std::function<void()>& call,
               const std::function<std::vector<Tensor>()>& leaves) {
  Tracer* const tracer = Tracer::current();
  if (tracer) tracer->host_call(name, leaves ? leaves() : std::vector<Tensor>(), call);
  return tracer || Replay::answer(name);
}

uint64_t Tracer::random_numbers_drawn() const {
  uint64_t drawn = 0;
  for (const Device device : devices_) drawn += default_generator(device).get_offset();
  return drawn;
}

Graph::Id Tracer::add(const Tensor& tensor, bool is_made) {
  const Graph::Id id = graph_.add({tensor.sizes(), tensor.strides(), tensor.storage_offset(), tensor.scalar_type(),
                                   tensor.device(), tensor.impl()->is_wrapped_number()});
  if (tensor.layout() == kStrided) {
    const Storage& storage = tensor.storage();
    KnownStorage& known = storages_.try_emplace(storage.get(), KnownStorage{storage, id, {}}).first->second;
    known.ids.push_back(id);
    graph_.info(id).memory = known.memory;
  }
  if (is_made) made_.insert(id);
  if (is_made && GraphDump::is_asked_for()) graph_.info(id).made_before = StackTrace::capture().caller_with_line();
  if (std::ranges::find(devices_, tensor.device()) == devices_.end() && !tensor.is_meta())
    devices_.push_back(tensor.device());
  held_.insert_or_assign(tensor.impl(), Held{tensor, id});
  return id;
}

Graph::Id Tracer::known(const Tensor& tensor) const {
  const auto held = held_.find(tensor.impl());
  // Its geometry may have been changed, by resize_ or set_data.
  if (held != held_.end() && same_place(graph_.info(held->second.id), tensor)) return held->second.id;
  const auto storage = storages_.find(tensor.storage().get());
  if (storage == storages_.end()) return Graph::kNone;
  const auto same =
      std::ranges::find_if(storage->second.ids, [&](Graph::Id id) { return same_place(graph_.info(id), tensor); });
  return same == storage->second.ids.end() ? Graph::kNone : *same;
}

// A view of a tensor that a call made: the front of an operator can make one without calling an operator.
Graph::Id Tracer::view_of_known(const Tensor& tensor) {
  const auto storage = storages_.find(tensor.storage().get());
  if (storage == storages_.end()) return Graph::kNone;
  const std::vector<Graph::Id>& ids = storage->second.ids;
  const auto found = std::ranges::find_if(
      ids, [&](Graph::Id id) { return made_.contains(id) && graph_.info(id).dtype == tensor.scalar_type(); });
  if (found == ids.end()) return Graph::kNone;
  const Graph::Id base = *found;
  const auto list = [](IntArrayRef numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); };
  Graph::Call call{.op = &ops::as_strided, .name = std::string(ops::as_strided.name())};
  call.arguments = {
      {Tensor(), {base}}, {list(tensor.sizes()), {}}, {list(tensor.strides()), {}}, {tensor.storage_offset(), {}}};
  const Graph::Id view = add(tensor, /*is_made=*/true);
  call.results = {{Tensor(), {view}}};
  graph_.calls.push_back(std::move(call));
  return view;
}

// Whether this is one of two parameters in the same memory, as tied weights are: each has a gradient of its own.
bool Tracer::is_another_leaf(const Tensor& tensor, Graph::Id id) const {
  if (held_.contains(tensor.impl()) || results_.contains(tensor.impl())) return false;
  const auto is_leaf = [](const Tensor& t) { return t.requires_grad() && t.is_leaf(); };
  const auto constant = std::ranges::find(graph_.constants, id, &Graph::Constant::id);
  return constant != graph_.constants.end() && is_leaf(constant->tensor) && is_leaf(tensor);
}

Graph::Id Tracer::id_of(const Tensor& tensor) {
  if (tensor.layout() != kStrided) return Graph::kNone;  // the trace ends there
  if (const Graph::Id id = known(tensor); id != Graph::kNone && !is_another_leaf(tensor, id)) {
    if (!held_.contains(tensor.impl())) held_.emplace(tensor.impl(), Held{tensor, id});
    return id;
  }
  if (const Graph::Id view = view_of_known(tensor); view != Graph::kNone) return view;
  const Graph::Id id = add(tensor);
  find_earlier_gradient(id, tensor);
  graph_.constants.push_back({id, tensor});
  const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer)};
  first_seen_.emplace_back(tensor);
  return id;
}

void Tracer::find_earlier_gradient(Graph::Id id, const Tensor& constant) {
  const auto is_gradient_of = [](const Tensor& tensor, const Tensor& leaf) {
    return leaf.is_leaf() && leaf.requires_grad() && leaf.grad().is_same(tensor);
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (is_gradient_of(constant, inputs_[i])) graph_.earlier_gradients.push_back({graph_.inputs[i], id});
  }
  for (const auto& [other, tensor] : graph_.constants) {
    if (is_gradient_of(constant, tensor)) graph_.earlier_gradients.push_back({other, id});
    if (is_gradient_of(tensor, constant)) graph_.earlier_gradients.push_back({id, other});
  }
}

Graph::Argument Tracer::argument_of(const Value& value) {
  Graph::Argument argument{with_tensors(value, {}), {}};
  for (const Tensor& t : tensors_of(value)) argument.tensors.push_back(t.defined() ? id_of(t) : Graph::kNone);
  return argument;
}

Graph::Argument Tracer::result_of(const Value& value) {
  Graph::Argument result{with_tensors(value, {}), {}};
  for (const Tensor& t : tensors_of(value)) {
    Graph::Id id = t.defined() ? known(t) : Graph::kNone;  // what was written in place, or an argument
    if (t.defined() && id == Graph::kNone) id = add(t, /*is_made=*/true);
    if (t.defined()) results_.insert(t.impl());
    result.tensors.push_back(id);
  }
  return result;
}

void Tracer::let_go() {
  for (bool again = true; again;) {  // a view that goes may have been the last to hold its base
    again = false;
    for (auto at = held_.begin(); at != held_.end();) {
      if (at->second.tensor.use_count() > 1) {
        ++at;
        continue;
      }
      at = held_.erase(at);
      again = true;
    }
  }
  std::erase_if(storages_, [](const auto& each) { return each.second.storage->use_count() == 1; });
  let_go_at_ = std::max<size_t>(256, 2 * held_.size());
}

std::vector<Graph::Id> Tracer::alive() {
  let_go();
  std::vector<Graph::Id> ids;
  for (const auto& [address, known] : storages_) {
    std::ranges::copy_if(known.ids, std::back_inserter(ids), [&](Graph::Id id) { return made_.contains(id); });
  }
  std::ranges::sort(ids);
  return ids;
}

void Tracer::cut(std::string why, const std::vector<Graph::Argument>& arguments) {
  const StackTrace trace = StackTrace::capture();
  const std::vector<std::string> frames = trace.frames_outside_library();
  const std::string line = short_text(source_line(trace.caller_with_line()));
  const bool is_known = line.empty() || why.ends_with(line);
  obstacle_ = str(why, frames.empty() ? "" : ", called from ", is_known ? "" : line + ", ", join_frames(frames));
  graph_.outputs = alive();
  std::ranges::copy_if(Graph::tensors_of(arguments), std::back_inserter(graph_.outputs),
                       [&](Graph::Id id) { return made_.contains(id); });
  set_gradients(graph_.gradients);
  if (!ran_backward()) graph_.gradients.clear();
  held_.clear();
  first_seen_.clear();
  current_tracer = nullptr;
}

Graph Tracer::take_graph() {
  for (const Graph::Gradient& each : graph_.earlier_gradients) {
    const Graph::TensorInfo& info = graph_.info(each.gradient);
    std::ranges::find(graph_.constants, each.gradient, &Graph::Constant::id)->tensor =
        detail::empty_strided(info.sizes, info.strides, info.dtype, kMeta);
  }
  return std::move(graph_);
}

void Tracer::end_before(const char* why) {
  if (current()) current()->cut(why, {});
}

void Tracer::set_gradients(std::vector<Graph::Gradient>& gradients) {
  for_each_given([&](Graph::Id id, const Tensor& leaf) {
    if (!leaf.is_leaf() || !leaf.requires_grad()) return;
    const Tensor& grad = leaf.grad();
    const Graph::Id of_grad = grad.defined() ? known(grad) : Graph::kNone;
    if (!grad.defined() || of_grad != Graph::kNone) gradients.push_back({id, of_grad});
  });
}

bool Tracer::ran_backward() const {
  const auto sets_gradient = [&](const Graph::Gradient& each) { return made_.contains(each.gradient); };
  return has_accumulated_ || std::ranges::any_of(graph_.gradients, sets_gradient) ||
         std::ranges::any_of(graph_.calls, [](const Graph::Call& call) { return !call.op; });
}

std::string Tracer::name_of_maker(Graph::Id made) const {
  const auto maker = std::ranges::find_if(graph_.calls, [&](const Graph::Call& call) {
    return std::ranges::count(Graph::tensors_of(call.results), made) > 0;
  });
  return maker == graph_.calls.end() ? "an operator" : maker->name;
}

// The backward pass that the caller may ask for, of gradients that are ones here.
void Tracer::trace_backward(const std::vector<Tensor>& outputs) {
  Graph::Backward backward{graph_.calls.size(), {}, {}};
  std::vector<Edge> roots, edges;
  Tensors given;
  for (const Tensor& output : outputs) {
    const bool is_asked = output.defined() && output.requires_grad() && made_.contains(id_of(output));
    backward.given.push_back(Graph::kNone);
    if (!is_asked) continue;
    roots.push_back(gradient_edge(output));
    const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer) | DispatchKey::Autograd};
    given.push_back(ones_like(output));
    backward.given.back() = add(given.back());
  }
  if (roots.empty()) return;
  for_each_given([&](Graph::Id id, const Tensor& tensor) {
    if (!tensor.requires_grad()) return;
    edges.push_back(gradient_edge(tensor));
    backward.found.push_back({id, Graph::kNone});
  });
  // What is behind the inputs is not the function's: the pass that the caller runs goes on there.
  const Tensors found =
      run_backward(roots, given, edges, {.retain_graph = true, .accumulate = false, .ends_at_inputs = true});
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].defined()) backward.found[i].gradient = id_of(found[i]);
  }
  backward.saved = saved_constants(outputs);
  graph_.backward = std::move(backward);
}

// The nodes of these tensors' history.
std::vector<Node*> nodes_behind(const std::vector<Tensor>& outputs) {
  std::vector<Node*> nodes;
  std::unordered_set<const Node*> seen;
  const auto go_to = [&](Node* node) {
    if (node && seen.insert(node).second) nodes.push_back(node);
  };
  for (const Tensor& output : outputs) go_to(output.defined() ? output.grad_fn().get() : nullptr);
  for (size_t i = 0; i < nodes.size(); ++i) {  // grows as edges lead to more
    for (const Edge& edge : nodes[i]->next_edges()) go_to(edge.node.get());
  }
  return nodes;
}

// What the nodes behind these tensors have saved.
std::vector<Tensor> saved_behind(const std::vector<Tensor>& outputs) {
  struct Collect final : SavedVisitor {
    std::vector<Tensor> tensors;
    void visit(const char* /*name*/, Saved& saved) override {
      if (saved.peek().defined()) tensors.push_back(saved.peek());
    }
  } collect;
  for (Node* const node : nodes_behind(outputs)) node->visit_saved(collect);
  return std::move(collect.tensors);
}

std::vector<Graph::Id> Tracer::saved_constants(const std::vector<Tensor>& outputs) const {
  std::unordered_set<int32_t> memories;  // a view of one may have been saved
  for (const Tensor& tensor : saved_behind(outputs)) {
    if (const Graph::Id id = known(tensor); id != Graph::kNone) memories.insert(graph_.info(id).memory);
  }
  std::vector<Graph::Id> constants;
  for (const Graph::Constant& each : graph_.constants) {
    if (memories.contains(graph_.info(each.id).memory) && !each.tensor.impl()->is_wrapped_number())
      constants.push_back(each.id);
  }
  return constants;
}

// A tensor that was there before and whose place in autograd's graph is another now, as after a write in place, or its
// sizes, as after unsqueeze_(): runs of a graph change neither. Empty where there is none.
std::string Tracer::what_became_another() const {
  const DispatchStateGuard not_traced{KeySet(DispatchKey::Tracer)};  // a view's grad_fn is made when it is asked for
  for (size_t i = 0; i < first_seen_.size(); ++i) {
    const auto& [tensor, grad_fn, requires_grad, sizes, strides] = first_seen_[i];
    if (tensor.sizes() != IntArrayRef(sizes) || tensor.strides() != IntArrayRef(strides))
      return str("it changes the sizes of a tensor that was there before, ", bracketed(sizes), ", to ",
                 bracketed(tensor.sizes()));
    const bool is_input = i < inputs_.size();  // a parameter may be frozen for a while
    if (tensor.grad_fn() == grad_fn && (!is_input || tensor.requires_grad() == requires_grad)) continue;
    return str("it changes the history of a tensor of sizes ", bracketed(sizes),
               " that was there before, as by a write in place that autograd follows");
  }
  return "";
}

// A tensor that a call made and that lives on, as an optimiser's state made at its first step does, would be made again
// by each run of the graph. Empty where there is none.
std::string Tracer::what_escaped(const std::vector<Tensor>& outputs) {
  let_go();
  std::vector<const TensorImpl*> expected;
  const auto expect = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    expected.push_back(tensor.impl());
    expected.push_back(tensor.impl()->view_base().get());
  };
  std::ranges::for_each(outputs, expect);
  for_each_given([&](Graph::Id /*id*/, const Tensor& tensor) {
    if (tensor.is_leaf()) expect(tensor.grad());
  });
  if (graph_.backward) std::ranges::for_each(saved_behind(outputs), expect);
  // The gradient of a leaf that the function made goes with the history of the outputs, if nobody else holds the two.
  const auto has_one_holder = [&](const Tensor& t) { return t.use_count() == 1 + held_.count(t.impl()); };
  for (const Node* const node : nodes_behind(outputs)) {
    const auto* const end = dynamic_cast<const AccumulateGrad*>(node);
    if (!end || !end->variable.grad().defined()) continue;
    if (has_one_holder(end->variable) && has_one_holder(end->variable.grad())) expect(end->variable.grad());
  }
  for (const auto& [impl, held] : held_) {
    if (made_.contains(held.id) && std::ranges::find(expected, impl) == expected.end())
      return str("it keeps what ", name_of_maker(held.id), " made, a tensor of sizes ", bracketed(held.tensor.sizes()),
                 ", and does not return it");
  }
  return "";
}

}  // namespace rush::compiler
