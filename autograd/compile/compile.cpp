#include "autograd/compile/compile.h"

#include <algorithm>
#include <optional>

#include "autograd/compile/fusion.h"
#include "autograd/compile/program.h"
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
    bool requires_grad, has_grad;
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;
  bool grad_mode, inference_mode;
  uint8_t autocast_devices;
  std::vector<ScalarType> autocast_dtypes;
  ScalarType default_dtype;
  uint64_t unseen_changes;
  bool operator==(const Signature&) const = default;

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
      inputs.push_back(
          {t.sizes(), t.strides(), t.scalar_type(), t.device(), t.requires_grad(), leaf && t.grad().defined()});
    }
  }
};

// Whether a leaf had a gradient when the function was called: then the backward pass adds to it.
struct LeafState {
  Tensor leaf;
  bool has_grad;
};

bool same_leaves(const std::vector<LeafState>& a, const std::vector<LeafState>& b) {
  return std::ranges::equal(a, b, [](const LeafState& x, const LeafState& y) { return x.leaf.is_same(y.leaf); });
}

std::vector<LeafState> leaves_of(const Graph& graph) {
  std::vector<LeafState> leaves;
  for (const auto& [id, tensor] : graph.constants) {
    if (tensor.is_leaf() && tensor.requires_grad()) leaves.push_back({tensor, tensor.grad().defined()});
  }
  return leaves;
}

}  // namespace

struct CompiledFunction::State {
  struct Entry {
    Signature signature;
    std::vector<LeafState> leaves;
    std::optional<Program> program;  // none until a trace could be used
    int traces = 0;

    bool fits_leaves() const {
      return std::ranges::all_of(leaves, [](const LeafState& each) {
        return each.leaf.requires_grad() && each.leaf.grad().defined() == each.has_grad;
      });
    }
  };
  CompileOptions options;
  std::vector<std::unique_ptr<Entry>> entries;
  std::string obstacle;

  Entry& entry_for(const std::vector<Tensor>& inputs) {
    const Signature signature(inputs);
    Entry* without_program = nullptr;
    for (const auto& entry : entries) {
      if (!(entry->signature == signature)) continue;
      if (!entry->program) without_program = entry.get();
      if (entry->program && entry->fits_leaves()) return *entry;
    }
    if (without_program) return *without_program;
    entries.push_back(std::make_unique<Entry>(Entry{signature, {}, std::nullopt}));
    return *entries.back();
  }

  std::vector<Tensor> trace(const Function& function, const std::vector<Tensor>& inputs, Entry& entry) {
    for (LeafState& each : entry.leaves) each.has_grad = each.leaf.grad().defined();
    Tracer tracer(inputs);
    std::vector<Tensor> outputs = tracer.run([&] { return function(inputs); });
    Graph graph = tracer.take_graph();
    std::vector<LeafState> leaves = leaves_of(graph);
    const bool are_known = same_leaves(leaves, entry.leaves);
    if (tracer.obstacle().empty() && are_known) {
      remove_dead_calls(graph);
      remove_clones(graph);
      if (options.fuse) fuse_element_wise_calls(graph, options.fewest_kernels);
      entry.program.emplace(std::move(graph));
    } else {
      entry.leaves = std::move(leaves);
      if (++entry.traces == kMostTraces && !tracer.obstacle().empty()) give_up(tracer.obstacle());
    }
    for (Tensor& output : outputs) {
      if (output.defined() && tracer.obstacle().empty()) output = output.detach();
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
  State::Entry& entry = state_->entry_for(inputs);
  if (entry.program) return entry.program->run(inputs);
  if (entry.traces >= kMostTraces) return function(inputs);
  return state_->trace(function, inputs, entry);
}

size_t CompiledFunction::compilations() const {
  return static_cast<size_t>(std::ranges::count_if(state_->entries, [](const auto& each) { return !!each->program; }));
}

const Graph& CompiledFunction::graph(size_t i) const {
  for (const auto& entry : state_->entries) {
    if (entry->program && i-- == 0) return entry->program->graph();
  }
  RUSH_THROW(IndexError, "compile: there are ", compilations(), " graphs");
}

const std::string& CompiledFunction::obstacle() const { return state_->obstacle; }

}  // namespace rush::compiler
