#include "autograd/compile/compile.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "autograd/compile/fusion.h"
#include "autograd/compile/graph_dump.h"
#include "autograd/compile/joint_program.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/recorded_calls.h"
#include "autograd/compile/replay.h"
#include "autograd/compile/signature.h"
#include "autograd/compile/trace_changes.h"
#include "autograd/compile/tracer.h"
#include "autograd/grad_mode.h"
#include "autograd/saved_tensors_hooks.h"
#include "core/amp/autocast.h"
#include "core/environment_flag.h"
#include "core/error/warning.h"
#include "core/graphs/graph.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

// A trace that cannot be used is tried again, since the first calls of a function often make what later ones use.
constexpr int kMostTraces = 4;

// Runs of a program from one trace to the next: see Note [What changes from call to call].
constexpr int kFewestBetweenTraces = 8;

// Calls it without the casts of weights that autocast kept before, and keeps none of its own: in a scope that is around
// the call the ones would be tensors from elsewhere, and the others would escape.
std::vector<Tensor> call_with_own_casts(const Function& function, const std::vector<Tensor>& inputs) {
  autocast::clear_cache();
  std::vector<Tensor> outputs = function(inputs);
  autocast::clear_cache();
  return outputs;
}

// Whether a leaf had a gradient when the function was called: then the backward pass adds to it.
struct LeafState {
  Tensor tensor;
  std::optional<DimVector> strides_of_grad = strides_now();

  std::optional<DimVector> strides_now() const {
    return tensor.grad().defined() ? std::optional<DimVector>(tensor.grad().strides()) : std::nullopt;
  }
  bool is_as_it_was() const { return tensor.requires_grad() && strides_now() == strides_of_grad; }
};

// An input that lies in the memory of a tensor from elsewhere, and where: a write to one is seen in the other, and a
// view of that tensor may be the input.
struct InMemory {
  size_t input;
  int64_t distance;
  bool operator==(const InMemory&) const = default;

  static std::vector<InMemory> all_of(const std::vector<Tensor>& inputs, const Tensor& tensor) {
    std::vector<InMemory> found;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_in_it = inputs[i].has_storage() && tensor.has_storage() && inputs[i].is_alias_of(tensor);
      if (is_in_it) found.push_back({i, inputs[i].storage_offset() - tensor.storage_offset()});
    }
    return found;
  }
};

// A tensor that the function took from elsewhere: whether autograd followed it, and its geometry, which set_data and
// Module::to change.
struct CapturedState {
  Tensor tensor;
  bool is_in_grad_mode = GradMode::is_enabled();
  bool requires_grad = tensor.requires_grad();
  ScalarType dtype = tensor.scalar_type();
  Device device = tensor.device();
  DimVector sizes = tensor.sizes(), strides = tensor.strides();
  std::vector<InMemory> inputs_in_it = {};

  bool is_as_it_was(const std::vector<Tensor>& inputs) const {
    return (!is_in_grad_mode || tensor.requires_grad() == requires_grad) && tensor.scalar_type() == dtype &&
           tensor.device() == device && tensor.sizes() == IntArrayRef(sizes) &&
           tensor.strides() == IntArrayRef(strides) && InMemory::all_of(inputs, tensor) == inputs_in_it;
  }
};

// What a graph depends on besides its inputs.
struct Guards {
  std::vector<LeafState> leaves = {};
  std::vector<CapturedState> captured = {};

  bool hold(const std::vector<Tensor>& inputs) const {
    return std::ranges::all_of(leaves, &LeafState::is_as_it_was) &&
           std::ranges::all_of(captured, [&](const CapturedState& each) { return each.is_as_it_was(inputs); });
  }
  void note(const std::vector<Tensor>& inputs) {
    for (LeafState& each : leaves) each.strides_of_grad = each.strides_now();
    for (CapturedState& each : captured)
      each = CapturedState{.tensor = each.tensor, .inputs_in_it = InMemory::all_of(inputs, each.tensor)};
  }
};

template <class State>
bool are_same(const std::vector<State>& a, const std::vector<State>& b) {
  return std::ranges::equal(a, b, [](const State& x, const State& y) { return x.tensor.is_same(y.tensor); });
}

bool is_on_accelerator(const Graph& graph) {
  return std::ranges::any_of(graph.tensors, [](const Graph::TensorInfo& info) { return info.device.is_accelerator(); });
}

// Where a function reads and sets no gradient, it does not matter whether leaves had one.
Guards guards_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  Guards found;
  const bool knows_gradients = !graph.gradients.empty() || !graph.earlier_gradients.empty();
  for (const auto& [id, tensor] : graph.constants) {
    if (!tensor.impl()->is_wrapped_number())
      found.captured.push_back({.tensor = tensor, .inputs_in_it = InMemory::all_of(inputs, tensor)});
    if (tensor.is_leaf() && tensor.requires_grad() && knows_gradients) found.leaves.push_back({tensor});
  }
  return found;
}

}  // namespace

struct CompiledFunction::State {
  // For one signature.
  struct Entry {
    Signature signature;
    Guards guards;
    std::optional<Graph> traced = {};          // by the last trace that did not end before the function, before passes
    std::optional<JointProgram> program = {};  // none until a trace could be used
    std::optional<CutTrace> cut = {};          // the last trace that ended before the function did
    std::shared_ptr<Program> until_cut = {};   // none until two ended there
    int traces = 0;
    int runs = 0;               // since the last trace
    uint64_t changes_seen = 0;  // of the unseen state, by the last trace

    // Whether a program is traced once more before it is believed.
    bool is_in_doubt() const {
      const bool may_have_changed = changes_seen != unseen_changes && runs >= kFewestBetweenTraces;
      return is_ready() && (traces == 1 || may_have_changed) && !graphs::is_capturing();
    }
    bool is_again(const Graph& graph, const std::optional<CutTrace>& cut_now) const {
      return cut_now ? until_cut && cut->is_same(*cut_now) : program && traced && is_same(*traced, graph);
    }
    // After a trace that is another one. Those of the first two calls are compared.
    void start_over() {
      program.reset();
      until_cut.reset();
      if (traces == 2) return;
      traced.reset();
      cut.reset();
      traces = 1;
    }
    bool is_ready() const { return program || until_cut; }
    bool is_recorded() const { return program ? program->is_recorded() : until_cut && until_cut->is_recorded(); }
    const Graph& graph() const { return program ? program->graph() : until_cut->graph(); }
  };
  // For signatures that differ in sizes.
  struct Family {
    Signature like;
    Guards guards;
    Pattern pattern;
    bool is_believed = false;  // a graph of it was compared with a trace
  };
  // Programs for so many sizes are kept; a training that has more is made for them again.
  static constexpr size_t kMostEntries = 128;

  CompileOptions options;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<Family> families;
  Guards last_guards;  // of the last trace
  std::string obstacle;
  bool is_given_up = false;  // the function runs as it stands
  size_t compilations = 0;
  std::shared_ptr<size_t> recording_places = std::make_shared<size_t>(RecordedCalls::kMostPrograms);

  Entry& entry_for(const std::vector<Tensor>& inputs) {
    const Signature signature(inputs);
    Entry* without_program = nullptr;
    for (const auto& entry : entries) {
      if (!(entry->signature == signature)) continue;
      if (!entry->is_ready()) without_program = entry.get();
      if (entry->is_ready() && entry->guards.hold(inputs)) return *entry;
    }
    if (without_program) return *without_program;
    if (!entries.empty()) log("traced again: " + reason_for(signature));
    if (entries.size() == kMostEntries) entries.erase(entries.begin());
    entries.push_back(std::make_unique<Entry>(Entry{.signature = signature, .guards = last_guards}));
    return *entries.back();
  }

  const Entry& ready_entry(size_t i) const {
    for (const auto& entry : entries) {
      if (entry->is_ready() && i-- == 0) return *entry;
    }
    RUSH_THROW(IndexError, "compile: there are not so many graphs");
  }

  // Why the graphs that are there do not serve.
  std::string reason_for(const Signature& signature) const {
    const std::string difference = signature.difference_from(entries.back()->signature);
    return difference.empty()
               ? "a parameter has another dtype, device or geometry, or other ones have or require a gradient"
               : difference;
  }

  Family* family_of(const std::vector<Tensor>& inputs, const Entry& entry) {
    for (Family& family : families) {
      if (family.like.differs_in_sizes(entry.signature) && family.guards.hold(inputs)) return &family;
    }
    return nullptr;
  }

  // A program without a trace.
  bool make_by_pattern(const std::vector<Tensor>& inputs, Entry& entry) {
    const Family* family = family_of(inputs, entry);
    if (!family || !family->is_believed) return false;
    std::optional<Graph> graph = family->pattern.for_inputs(inputs);
    if (!graph) return false;
    entry.guards = family->guards;
    entry.changes_seen = unseen_changes;
    make_program(*graph, entry);
    return true;
  }

  void make_program(Graph graph, Entry& entry) {
    if (graph.backward && options.memory_budget < 1) rematerialise(graph, options.memory_budget);
    if (graph.backward && is_on_accelerator(graph)) compute_beside_readers(graph);
    entry.program.emplace(graph, [&](Graph part, const std::string& name, const ProgramEnds& ends) {
      return ready(std::move(part), name, ends);
    });
  }

  // The program of a graph after the passes.
  std::shared_ptr<Program> ready(Graph graph, const std::string& part, const ProgramEnds& ends) const {
    std::shared_ptr<Program> program = after_passes(std::move(graph), part);
    if (options.record && is_on_accelerator(program->graph()))
      program->record_calls(ends, options.fewest_recorded, recording_places);
    return program;
  }

  std::shared_ptr<Program> after_passes(Graph graph, const std::string& part) const {
    GraphDump dump(part);
    dump.add("traced", graph);
    const auto pass = [&](const char* name, auto&& change) {
      change(graph);
      dump.add(name, graph);
    };
    pass("remove_dead_calls", remove_dead_calls);
    pass("remove_clones", remove_clones);
    if (is_on_accelerator(graph)) pass("find_orders_once", find_orders_once);
    pass("remove_common_calls", remove_common_calls);
    if (options.memory_budget < 1) pass("rematerialise", [&](Graph& g) { rematerialise(g, options.memory_budget); });
    if (is_on_accelerator(graph)) pass("compute_beside_readers", compute_beside_readers);
    if (!options.fuse) return std::make_shared<Program>(std::move(graph));
    std::optional<Graph> unfused;
    if (options.check) unfused = graph;
    pass("replace_calls", replace_calls);
    if (is_on_accelerator(graph)) pass("pad_products", [&](Graph& g) { pad_products(g, options.pads_outputs); });
    pass("decompose_calls", decompose_calls);
    if (is_on_accelerator(graph)) pass("split_concatenations", split_concatenations);
    pass("fuse_element_wise_calls", [&](Graph& g) { fuse_element_wise_calls(g, options.fewest_kernels); });
    pass("gather_casts", gather_casts);
    return std::make_shared<Program>(std::move(graph), std::move(unfused));
  }

  // What a new trace says of other sizes.
  void learn(const std::vector<Tensor>& inputs, const Entry& entry) {
    ++compilations;
    if (!options.dynamic) return;
    if (Family* family = family_of(inputs, entry)) {
      const std::optional<Graph> expected = family->pattern.for_inputs(inputs);
      if (expected && is_same(*expected, *entry.traced)) {
        family->is_believed = true;
        --compilations;
        return;
      }
      families.erase(families.begin() + (family - families.data()));
    }
    for (const auto& other : entries) {
      if (!other->is_ready() || !other->traced || !other->signature.differs_in_sizes(entry.signature)) continue;
      if (std::optional<Pattern> pattern = Pattern::of(*other->traced, *entry.traced)) {
        families.push_back({entry.signature, entry.guards, std::move(*pattern)});
        return;
      }
    }
  }

  std::vector<Tensor> trace(const Function& function, const std::vector<Tensor>& inputs, Entry& entry) {
    entry.guards.note(inputs);
    Tracer tracer(inputs);
    std::vector<Tensor> outputs = tracer.run([&] { return call_with_own_casts(function, inputs); });
    Graph graph = tracer.take_graph();
    const bool is_whole = tracer.obstacle().empty(), has_history = graph.backward.has_value();
    std::optional<CutTrace> cut;
    if (!is_whole) cut.emplace(graph, tracer.take_calls());
    ++entry.traces;
    entry.runs = 0;
    entry.changes_seen = unseen_changes;
    if (!entry.is_again(graph, cut)) learn_from(std::move(graph), std::move(cut), tracer.obstacle(), inputs, entry);
    for (Tensor& output : outputs) {
      if (output.defined() && is_whole && !is_given_up && !has_history) output = output.detach();
    }
    return outputs;
  }

  // From a trace that no program is of.
  void learn_from(Graph graph, std::optional<CutTrace> cut, const std::string& obstacle_met,
                  const std::vector<Tensor>& inputs, Entry& entry) {
    if (entry.is_ready()) entry.start_over();
    last_guards = guards_of(graph, inputs);
    const bool are_leaves_known = are_same(last_guards.leaves, entry.guards.leaves);
    if (!are_leaves_known) entry.guards.leaves = last_guards.leaves;
    if (!are_same(last_guards.captured, entry.guards.captured)) entry.guards.captured = last_guards.captured;
    if (cut) return stop_at(obstacle_met, std::move(*cut), std::move(graph), are_leaves_known, entry);
    const bool can_compare = entry.traced && !graphs::is_capturing();
    const std::string change = can_compare ? change_between(*entry.traced, graph) : std::string();
    if (!change.empty()) return give_up(change);
    entry.traced = graph;
    if (!are_leaves_known) return;
    make_program(std::move(graph), entry);
    learn(inputs, entry);
  }

  // A trace ended before the function did. The second that ends there makes a program of what comes before.
  void stop_at(const std::string& why, CutTrace cut, Graph graph, bool are_leaves_known, Entry& entry) {
    const bool is_known = are_leaves_known && entry.cut && entry.cut->is_same(cut);
    entry.cut = std::move(cut);
    if (!is_known && entry.traces < kMostTraces) return;
    graph.gradients.clear();  // autograd sets them when the function runs
    const ProgramEnds ends{.returned = graph.outputs.size()};
    std::shared_ptr<Program> before = ready(std::move(graph), "until_cut", ends);
    const bool is_worth_it = is_known && std::ranges::any_of(before->graph().calls,
                                                             [](const Graph::Call& call) { return bool{call.fused}; });
    if (is_worth_it) entry.until_cut = std::move(before);
    if (is_worth_it) ++compilations;
    entry.traces = kMostTraces;
    if (obstacle != why) say(is_worth_it ? " from there on: " : ": ", why);
  }

  void give_up(const std::string& why) {
    is_given_up = true;
    entries.clear();
    say(": ", why);
  }

  void say(const char* where, const std::string& why) {
    obstacle = why;
    warn(Warning(str("compile: the function runs as it stands", where, why)));
  }

  // See Note [Functions that are cut].
  std::vector<Tensor> run_cut(const Function& function, const std::vector<Tensor>& inputs, const Entry& entry) {
    std::vector<std::pair<Tensor, Tensor>> gradients;  // as the function is to find them
    const auto keep = [&](const Tensor& leaf) { gradients.emplace_back(leaf, leaf.grad()); };
    for (const LeafState& each : entry.guards.leaves) keep(each.tensor);
    std::ranges::for_each(inputs | std::views::filter(&Tensor::is_leaf), keep);
    Replay replay(*entry.cut, entry.until_cut->run(inputs));
    for (const auto& [leaf, gradient] : gradients) leaf.mutable_grad() = gradient;
    return replay.run([&] { return call_with_own_casts(function, inputs); });
  }
};

CompiledFunction::CompiledFunction(const CompileOptions& options) : state_(std::make_unique<State>()) {
  RUSH_CHECK_VALUE(options.memory_budget >= 0 && options.memory_budget <= 1,
                   "compile: memory_budget must be from 0 to 1, got ", options.memory_budget);
  state_->options = options;
  state_->options.check |= environment_flag("RUSH_COMPILE_CHECK");
}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

std::vector<Tensor> CompiledFunction::call(const Function& function, const std::vector<Tensor>& inputs) {
  if (Tracer::current() || Replay::is_running()) return function(inputs);  // a part of the function that is traced
  if (state_->is_given_up) return function(inputs);
  // A trace would save other tensors than its program, and its backward pass would note what the hooks do.
  if (autograd::SavedTensorsHooks::current()) {
    RUSH_WARN_ONCE(
        "compile: a function runs as it stands within autograd::checkpoint or SavedTensorsHooks, which take the ",
        "tensors that it saves");
    return function(inputs);
  }
  State::Entry& entry = state_->entry_for(inputs);
  if (entry.is_in_doubt()) return state_->trace(function, inputs, entry);
  ++entry.runs;
  if (entry.until_cut) return state_->run_cut(function, inputs, entry);
  if (entry.program || state_->make_by_pattern(inputs, entry)) return entry.program->run(inputs);
  if (entry.traces >= kMostTraces) return function(inputs);
  return state_->trace(function, inputs, entry);
}

size_t CompiledFunction::compilations() const { return state_->compilations; }

const Graph& CompiledFunction::graph(size_t i) const { return state_->ready_entry(i).graph(); }
const Graph* CompiledFunction::backward_graph(size_t i) const {
  const State::Entry& entry = state_->ready_entry(i);
  return entry.program ? entry.program->backward_graph() : nullptr;
}

size_t CompiledFunction::recorded() const {
  return static_cast<size_t>(
      std::ranges::count_if(state_->entries, [](const auto& entry) { return entry->is_recorded(); }));
}

const std::string& CompiledFunction::obstacle() const { return state_->obstacle; }

}  // namespace rush::compiler
