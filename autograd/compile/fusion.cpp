#include "autograd/compile/fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "autograd/compile/fused_loop.h"
#include "autograd/compile/lowering.h"
#include "core/device/backend.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

// Calls that are to become one loop.
class Group {
 public:
  explicit Group(const Graph& graph) : graph_(graph) {}

  size_t kernels() const { return kernels_.size(); }

  // Adds a call if it fits; false otherwise.
  bool add(const Graph::Call& call, const std::vector<ElementWise>& kernels) {
    const Graph::Id first = kernels.back().operands[0].id;
    const DimVector& sizes = info(first).sizes;
    if (!kernels_.empty() && (!(IntArrayRef(sizes) == IntArrayRef(sizes_)) || info(first).device != device_))
      return false;
    for (const ElementWise& kernel : kernels) {
      for (const ElementWise::Operand& operand : kernel.operands) {
        if (operand.id != Graph::kNone && !(fits(operand.id) && is_apart(operand.id, call.written))) return false;
      }
    }
    for (const Graph::Id id : read_) {
      if (!is_apart(id, call.written)) return false;
    }
    sizes_ = sizes;
    device_ = info(first).device;
    Graph::for_each_tensor(call.results, [&](Graph::Id id) {
      if (!read_.contains(id) && std::ranges::find(call.written, id) == call.written.end()) made_.insert(id);
    });
    for (const Graph::Id id : call.written) written_.emplace(info(id).memory, id);
    for (const ElementWise& kernel : kernels) {
      const int base = temporaries_;
      ElementWise placed = kernel;
      for (ElementWise::Operand& operand : placed.operands) {
        if (operand.id != Graph::kNone) {
          read_.insert(operand.id);
          memories_.insert(info(operand.id).memory);
        } else {
          operand.temporary += base;
          most_ = std::max(most_, operand.temporary + 1);
        }
      }
      kernels_.push_back(std::move(placed));
    }
    temporaries_ = most_;
    for (const Graph::Id id : made_) written_.emplace(info(id).memory, id);
    names_.insert(names_.end(), call.name);
    return true;
  }

  // Whether the call can go before the loop: what it reads is not written by the loop, what it writes is not read
  // there.
  bool is_independent_of(const Graph::Call& call) const {
    if (!call.op) return false;
    bool independent = true;
    Graph::for_each_tensor(call.arguments, [&](Graph::Id id) { independent &= !written_.contains(info(id).memory); });
    for (const Graph::Id id : call.written) independent &= !memories_.contains(info(id).memory);
    return independent;
  }

  // The loop as a call. `is_seen` tells which tensors are read outside of it.
  Graph::Call loop(const std::vector<bool>& is_seen) const {
    std::vector<FusedLoop::Place> places;
    std::map<std::pair<Graph::Id, int>, int> numbers;
    Graph::Call call{.name = "fused(" + names() + ")"};
    const auto place_of = [&](const ElementWise::Operand& operand) {
      const auto [at, is_new] =
          numbers.emplace(std::pair(operand.id, operand.temporary), static_cast<int>(places.size()));
      if (!is_new) return at->second;
      FusedLoop::Place place{.dtype = operand.dtype, .device = device_};
      if (operand.id != Graph::kNone && (!made_.contains(operand.id) || is_seen[static_cast<size_t>(operand.id)])) {
        const Graph::TensorInfo& tensor = info(operand.id);
        place.id = operand.id;
        place.is_new = made_.contains(operand.id);
        place.sizes = tensor.sizes;
        place.strides = tensor.strides;
        place.device = tensor.device;
        (place.is_new ? call.results : call.arguments).push_back({Tensor(), {operand.id}});
      }
      places.push_back(std::move(place));
      return at->second;
    };
    std::vector<LoopDescription::Step> steps;
    for (const ElementWise& kernel : kernels_) {
      LoopDescription::Step step{kernel.call, {}};
      for (const ElementWise::Operand& operand : kernel.operands) step.places.push_back(place_of(operand));
      steps.push_back(std::move(step));
    }
    for (const auto& [memory, id] : written_) {
      if (!made_.contains(id)) call.written.push_back(id);
    }
    call.fused = std::make_shared<FusedLoop>(sizes_, device_, std::move(places), std::move(steps));
    return call;
  }

 private:
  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.tensors[static_cast<size_t>(id)]; }
  // What the loop writes is read at the same place of the loop alone.
  bool fits(Graph::Id id) const {
    const auto [first, last] = written_.equal_range(info(id).memory);
    return std::all_of(first, last, [&](const auto& each) { return each.second == id; });
  }
  // And what it reads at another place it does not write: an element may be written before it is read.
  bool is_apart(Graph::Id read, const std::vector<Graph::Id>& written) const {
    return std::ranges::none_of(written,
                                [&](Graph::Id id) { return id != read && info(id).memory == info(read).memory; });
  }
  std::string names() const {
    std::string text;
    for (const std::string& name : names_) text += str(text.empty() ? "" : ", ", name);
    return text;
  }

  const Graph& graph_;
  DimVector sizes_;
  Device device_;
  std::vector<ElementWise> kernels_;
  std::vector<std::string> names_;
  std::set<Graph::Id> made_, read_;
  std::set<int32_t> memories_;
  std::multimap<int32_t, Graph::Id> written_;
  int temporaries_ = 0, most_ = 0;
};

// Whether the backend of the kernels' outputs can fuse them: all operands lie there, or are numbers on the CPU.
bool can_fuse(const Graph& graph, const std::vector<ElementWise>& kernels) {
  const auto info = [&](Graph::Id id) -> const Graph::TensorInfo& { return graph.tensors[static_cast<size_t>(id)]; };
  const Device device = info(kernels.back().operands[0].id).device;
  Backend* const backend = backend_or_null(device.type);
  return backend && std::ranges::all_of(kernels, [&](const ElementWise& kernel) {
           std::vector<ScalarType> dtypes;
           for (const ElementWise::Operand& operand : kernel.operands) {
             dtypes.push_back(operand.dtype);
             if (operand.id == Graph::kNone || info(operand.id).device == device) continue;
             if (!info(operand.id).device.is_cpu() || !info(operand.id).sizes.empty()) return false;
           }
           return backend->can_fuse(*kernel.call, dtypes);
         });
}

// Which tensors the calls that are not `inside` read.
std::vector<bool> seen_outside(const Graph& graph, const std::vector<size_t>& inside) {
  std::vector<bool> seen(graph.tensors.size(), false);
  const auto see = [&](Graph::Id id) {
    if (id != Graph::kNone) seen[static_cast<size_t>(id)] = true;
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (std::ranges::binary_search(inside, i)) continue;
    Graph::for_each_tensor(graph.calls[i].arguments, see);
  }
  std::ranges::for_each(graph.outputs, see);
  for (const Graph::Gradient& each : graph.gradients) see(each.gradient);
  return seen;
}

}  // namespace

void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels) {
  std::vector<Graph::Call> calls;
  std::vector<size_t> members;
  std::optional<Group> group;
  const auto close = [&] {
    if (group && group->kernels() >= fewest_kernels) {
      calls.push_back(group->loop(seen_outside(graph, members)));
    } else {
      for (const size_t i : members) calls.push_back(graph.calls[i]);
    }
    members.clear();
    group.reset();
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Graph::Call& call = graph.calls[i];
    const auto kernels = element_wise_kernels(graph, call);
    if (!kernels || !can_fuse(graph, *kernels)) {
      if (group && !group->is_independent_of(call)) close();
      calls.push_back(call);
      continue;
    }
    if (!group) group.emplace(graph);
    if (!group->add(call, *kernels)) {
      close();
      group.emplace(graph);
      if (!group->add(call, *kernels)) {
        group.reset();
        calls.push_back(call);
        continue;
      }
    }
    members.push_back(i);
  }
  close();
  graph.calls = std::move(calls);
}

}  // namespace rush::compiler
