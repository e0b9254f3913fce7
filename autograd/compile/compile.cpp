#include "autograd/compile/compile.h"

#include <algorithm>
#include <optional>

#include "autograd/compile/fusion.h"
#include "autograd/compile/joint_program.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/replacements.h"
#include "autograd/compile/tracer.h"
#include "core/dispatch/key.h"
#include "core/error/warning.h"

namespace rush::compiler {

namespace {

// A trace that cannot be used is tried again, since the first calls of a function often make what later ones use.
constexpr int kMostTraces = 4;

// What a graph depends on.
struct Signature {
  struct Input {
    DimVector sizes, strides;
    ScalarType dtype;
    Device device;
    bool requires_grad, has_grad, is_wrapped_number;
    size_t shares_with;  // the first input that has its storage, as when one tensor is given twice
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;
  bool grad_mode, inference_mode;
  uint8_t autocast_devices;
  std::vector<ScalarType> autocast_dtypes;
  ScalarType default_dtype;
  uint64_t unseen_changes;
  bool operator==(const Signature&) const = default;
  // And in strides, but in nothing else.
  bool differs_in_sizes(Signature other) const {
    if (*this == other || inputs.size() != other.inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].sizes.size() != other.inputs[i].sizes.size()) return false;
      other.inputs[i].sizes = inputs[i].sizes;
      other.inputs[i].strides = inputs[i].strides;
    }
    return *this == other;
  }

  explicit Signature(const std::vector<Tensor>& tensors)
      : grad_mode(dispatch_state.grad_mode),
        inference_mode(dispatch_state.inference_mode),
        autocast_devices(dispatch_state.autocast.devices),
        autocast_dtypes(std::begin(dispatch_state.autocast.dtypes), std::end(dispatch_state.autocast.dtypes)),
        default_dtype(get_default_dtype()),
        unseen_changes(compiler::unseen_changes) {
    for (const Tensor& t : tensors) {
      RUSH_CHECK_VALUE(t.defined(), "compile: an input is undefined");
      const bool leaf = t.is_leaf() && t.requires_grad();
      const auto first = std::ranges::find_if(tensors, [&](const Tensor& other) {
        return other.is_same(t) || (other.has_storage() && t.has_storage() && other.is_alias_of(t));
      });
      inputs.push_back({t.sizes(), t.strides(), t.scalar_type(), t.device(), t.requires_grad(),
                        leaf && t.grad().defined(), t.impl()->is_wrapped_number(),
                        static_cast<size_t>(first - tensors.begin())});
    }
  }
};

// Whether a leaf had a gradient when the function was called: then the backward pass adds to it.
struct LeafState {
  Tensor leaf;
  bool has_grad;

  bool is_as_it_was() const { return leaf.requires_grad() && leaf.grad().defined() == has_grad; }
};

bool same_leaves(const std::vector<LeafState>& a, const std::vector<LeafState>& b) {
  return std::ranges::equal(a, b, [](const LeafState& x, const LeafState& y) { return x.leaf.is_same(y.leaf); });
}

// Those that matter to a graph: of a function that sets no gradient none does.
std::vector<LeafState> leaves_of(const Graph& graph) {
  std::vector<LeafState> leaves;
  if (graph.gradients.empty()) return leaves;
  for (const auto& [id, tensor] : graph.constants) {
    if (tensor.is_leaf() && tensor.requires_grad()) leaves.push_back({tensor, tensor.grad().defined()});
  }
  return leaves;
}

}  // namespace

struct CompiledFunction::State {
  // For one signature.
  struct Entry {
    Signature signature;
    std::vector<LeafState> leaves;
    std::optional<Graph> traced;          // before the passes
    std::optional<JointProgram> program;  // none until a trace could be used
    int traces = 0;

    bool fits_leaves() const { return std::ranges::all_of(leaves, &LeafState::is_as_it_was); }
  };
  // For signatures that differ in sizes.
  struct Family {
    Signature like;
    std::vector<LeafState> leaves;
    Pattern pattern;
    bool is_believed = false;  // a graph of it was compared with a trace
  };
  // Programs for so many sizes are kept; a training that has more is made for them again.
  static constexpr size_t kMostEntries = 128;

  CompileOptions options;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<Family> families;
  std::vector<LeafState> last_leaves;  // of the last trace
  std::string obstacle;
  size_t compilations = 0;

  Entry& entry_for(const std::vector<Tensor>& inputs) {
    const Signature signature(inputs);
    Entry* without_program = nullptr;
    for (const auto& entry : entries) {
      if (!(entry->signature == signature)) continue;
      if (!entry->program) without_program = entry.get();
      if (entry->program && entry->fits_leaves()) return *entry;
    }
    if (without_program) return *without_program;
    if (entries.size() == kMostEntries) entries.erase(entries.begin());
    entries.push_back(std::make_unique<Entry>(Entry{signature, last_leaves, std::nullopt, std::nullopt}));
    return *entries.back();
  }

  Family* family_of(const Entry& entry) {
    for (Family& family : families) {
      if (family.like.differs_in_sizes(entry.signature) && std::ranges::all_of(family.leaves, &LeafState::is_as_it_was))
        return &family;
    }
    return nullptr;
  }

  // A program without a trace.
  bool make_by_pattern(const std::vector<Tensor>& inputs, Entry& entry) {
    const Family* family = family_of(entry);
    if (!family || !family->is_believed) return false;
    std::optional<Graph> graph = family->pattern.for_inputs(inputs);
    if (!graph) return false;
    entry.leaves = family->leaves;
    make_program(std::move(*graph), entry);
    return true;
  }

  void make_program(Graph graph, Entry& entry) {
    entry.program.emplace(std::move(graph), [&](Graph& part) {
      remove_dead_calls(part);
      remove_clones(part);
      remove_common_calls(part);
      if (!options.fuse) return;
      replace_calls(part);
      fuse_element_wise_calls(part, options.fewest_kernels);
      gather_casts(part);
    });
  }

  // What a new trace says of other sizes.
  void learn(const std::vector<Tensor>& inputs, const Entry& entry) {
    ++compilations;
    if (!options.dynamic) return;
    if (Family* family = family_of(entry)) {
      const std::optional<Graph> expected = family->pattern.for_inputs(inputs);
      if (expected && is_same(*expected, *entry.traced)) {
        family->is_believed = true;
        --compilations;
        return;
      }
      families.erase(families.begin() + (family - families.data()));
    }
    for (const auto& other : entries) {
      if (!other->traced || !other->signature.differs_in_sizes(entry.signature)) continue;
      if (std::optional<Pattern> pattern = Pattern::of(*other->traced, *entry.traced)) {
        families.push_back({entry.signature, entry.leaves, std::move(*pattern)});
        return;
      }
    }
  }

  std::vector<Tensor> trace(const Function& function, const std::vector<Tensor>& inputs, Entry& entry) {
    for (LeafState& each : entry.leaves) each.has_grad = each.leaf.grad().defined();
    Tracer tracer(inputs);
    std::vector<Tensor> outputs = tracer.run([&] { return function(inputs); });
    Graph graph = tracer.take_graph();
    last_leaves = leaves_of(graph);
    if (tracer.obstacle().empty() && same_leaves(last_leaves, entry.leaves)) {
      entry.traced = graph;
      make_program(std::move(graph), entry);
      learn(inputs, entry);
    } else {
      entry.leaves = last_leaves;
      if (++entry.traces == kMostTraces && !tracer.obstacle().empty()) give_up(tracer.obstacle());
    }
    for (Tensor& output : outputs) {
      const bool has_history = entry.traced && entry.traced->backward;
      if (output.defined() && tracer.obstacle().empty() && !has_history) output = output.detach();
    }
    return outputs;
  }

  void give_up(const std::string& why) {
    obstacle = why;
    warn(Warning("compile: the function runs as it stands: " + why));
  }
};

CompiledFunction::CompiledFunction(const CompileOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

std::vector<Tensor> CompiledFunction::call(const Function& function, const std::vector<Tensor>& inputs) {
  if (Tracer::current()) return function(inputs);  // it becomes a part of the function that is traced
  State::Entry& entry = state_->entry_for(inputs);
  if (entry.program || state_->make_by_pattern(inputs, entry)) return entry.program->run(inputs);
  if (entry.traces >= kMostTraces) return function(inputs);
  return state_->trace(function, inputs, entry);
}

size_t CompiledFunction::compilations() const { return state_->compilations; }

const JointProgram& CompiledFunction::program(size_t i) const {
  for (const auto& entry : state_->entries) {
    if (entry->program && i-- == 0) return *entry->program;
  }
  RUSH_THROW(IndexError, "compile: there are not so many graphs");
}
const Graph& CompiledFunction::graph(size_t i) const { return program(i).graph(); }
const Graph* CompiledFunction::backward_graph(size_t i) const { return program(i).backward_graph(); }

const std::string& CompiledFunction::obstacle() const { return state_->obstacle; }

}  // namespace rush::compiler
