// Makes loops of element-wise calls and reductions of rows: Note [Which calls are fused].
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>

#include "autograd/compile/fused_loop.h"
#include "autograd/compile/lowering.h"
#include "autograd/compile/passes.h"
#include "core/device/backend.h"
#include "core/ops/reduce/reduce.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

// Rows that are worth a loop: not so short that calls of kernels cost more than their elements, nor so long or so few
// that a backend splits them over threads, or that a cache does not hold some of them.
bool suits_rows(IntArrayRef sizes, int64_t element_size, Device device) {
  constexpr int64_t kFewestColumns = 16, kFewRows = 64, kManyRows = 4096, kLongRow = 65536;
  const int64_t columns = sizes.back(), most_columns = device.is_cpu() ? 16384 : 65536;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
  if (columns < kFewestColumns || columns > most_columns || rows > std::numeric_limits<int32_t>::max()) return false;
  return columns * element_size < kLongRow ? rows >= kFewRows || columns <= kManyRows : rows >= kManyRows;
}

bool broadcasts(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1 && from[d] != to[lead + d]) return false;
  }
  return true;
}

// Calls that are to become one loop.
class Group {
 public:
  explicit Group(const Graph& graph) : graph_(graph) {}

  size_t kernels() const { return kernels_.size(); }

  // Adds a call if it fits; false otherwise.
  bool add(const Graph::Call& call, const std::vector<LoweredKernel>& kernels) {
    const Device device = info(kernels.back().operands[0].id).device;
    if (!kernels_.empty() && device != device_) return false;
    device_ = device;
    if (!fits_sizes(kernels)) return false;
    if ((reduces_ || reduce(kernels)) && (writes_in_place_ || !call.written.empty())) return false;
    for (const LoweredKernel& kernel : kernels) {
      for (const LoweredKernel::Operand& operand : kernel.operands) {
        if (operand.id != Graph::kNone && !(fits(operand.id) && is_apart(operand.id, call.written))) return false;
      }
    }
    if (!std::ranges::all_of(read_, [&](Graph::Id id) { return is_apart(id, call.written); })) return false;
    if (reads_follower(call) || !spares_followers(call)) return false;
    if (kernels_.empty()) sizes_ = walked(kernels);
    writes_in_place_ |= !call.written.empty();
    for (const Graph::Id id : Graph::tensors_of(call.results)) {
      if (!read_.contains(id) && !std::ranges::count(call.written, id)) made_.insert(id);
    }
    for (const Graph::Id id : call.written) written_.emplace(info(id).memory, id);
    for (const LoweredKernel& kernel : kernels) {
      const int base = temporaries_;
      LoweredKernel placed = kernel;
      reduces_ |= kernel.reduces();
      for (LoweredKernel::Operand& operand : placed.operands) {
        if (operand.id != Graph::kNone) {
          operand.id = made_by_loop(operand.id);
          read_.insert(operand.id);
          memories_.insert(info(operand.id).memory);
        } else {
          operand.temporary += base;
          most_ = std::max(most_, operand.temporary + 1);
        }
      }
      if (const Graph::Id out = placed.operands[0].id; out != Graph::kNone && gives_rows(placed)) rows_.insert(out);
      kernels_.push_back(std::move(placed));
    }
    temporaries_ = most_;
    for (const Graph::Id id : made_) written_.emplace(info(id).memory, id);
    names_ += str(names_.empty() ? "" : ", ", call.name);
    return true;
  }

  // Takes in a view that stands for what the loop makes, element by element or repeated over rows; false for others.
  bool add_view(const Graph::Call& call) {
    if (!call.op || !call.op->is_view() || call.results.size() != 1 || call.results[0].tensors.size() != 1)
      return false;
    const Graph::Id view = call.result(), base = made_by_loop(call.argument(0));
    if (!made_.contains(base) || info(view).storage_offset != info(base).storage_offset ||
        info(view).dtype != info(base).dtype || info(view).sizes.size() != sizes_.size())
      return false;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (stride_of(view, d) != stride_of(base, d)) return false;
    }
    stands_for_.emplace(view, base);
    return true;
  }

  // Whether the call can go before the loop: what it reads is not written by the loop, what it writes is not read
  // there.
  bool is_independent_of(const Graph::Call& call) const {
    return call.op && !reads_follower(call) && spares_followers(call) &&
           !any_in(Graph::tensors_of(call.arguments), written_) && !any_in(call.written, memories_);
  }

  // Takes a call that is to go after the loop: a sum over other dimensions than rows', or what follows from one; false
  // for others.
  bool add_follower(const Graph::Call& call, bool is_fusible) {
    if (!call.op || !call.written.empty() || call.is_random) return false;
    if (!reads_follower(call) && (call.op != &ops::sum_dim || is_fusible)) return false;
    for (const Graph::Id id : Graph::tensors_of(call.arguments)) read_by_followers_.insert(info(id).memory);
    for (const Graph::Id id : Graph::tensors_of(call.results)) made_by_followers_.insert(info(id).memory);
    return true;
  }

  // The loop as a call. `seen` are the tensors that are read outside of it.
  Graph::Call loop(const std::set<Graph::Id>& seen) const {
    std::vector<FusedLoop::Place> places;
    std::map<std::pair<Graph::Id, int>, size_t> numbers;
    Graph::Call call{.name = "fused(" + names_ + ")"};
    const auto place_of = [&](const LoweredKernel::Operand& operand, bool is_row) {
      const auto key = std::pair(operand.id, operand.temporary);
      const auto [at, is_new] = numbers.emplace(key, places.size());
      if (!is_new) return at->second;
      FusedLoop::Place place{.is_row = is_row, .dtype = operand.dtype, .device = device_};
      if (operand.id != Graph::kNone && (!made_.contains(operand.id) || seen.contains(operand.id))) {
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
    for (const LoweredKernel& kernel : kernels_) {
      LoopDescription::Step step{kernel.call, {}, kernel.how};
      // A place that a kernel makes is the output of the first that has it.
      for (const LoweredKernel::Operand& operand : kernel.operands)
        step.places.push_back(place_of(operand, step.places.empty() && gives_rows(kernel)));
      steps.push_back(std::move(step));
    }
    for (const auto& [memory, id] : written_) {
      if (!made_.contains(id)) call.written.push_back(id);
    }
    call.fused = std::make_shared<FusedLoop>(sizes_, device_, std::move(places), std::move(steps));
    return call;
  }

 private:
  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.info(id); }
  static bool reduce(const std::vector<LoweredKernel>& kernels) {
    return std::ranges::any_of(kernels, &LoweredKernel::reduces);
  }
  // The sizes of the loop that kernels would begin.
  static const DimVector& walked(const std::vector<LoweredKernel>& kernels) {
    const auto first = std::ranges::find_if(kernels, &LoweredKernel::reduces);
    return first == kernels.end() ? kernels.back().sizes : first->sizes;
  }
  // Of an element-wise kernel on one element for each row or fewer, where `sizes` are the loop's.
  static bool is_of_rows(const LoweredKernel& kernel, IntArrayRef sizes) {
    return sizes.back() != 1 && (kernel.sizes.empty() || kernel.sizes.back() == 1);
  }
  bool gives_rows(const LoweredKernel& kernel) const {
    return reduces_ && (kernel.reduces() || is_of_rows(kernel, sizes_));
  }
  // Whether they walk the loop's elements, or its rows where it has them. What a kernel leaves for the same call's
  // alone, such as a number of another dtype, may be smaller.
  bool fits_sizes(const std::vector<LoweredKernel>& kernels) const {
    const DimVector& sizes = kernels_.empty() ? walked(kernels) : sizes_;
    DimVector rows = sizes;
    if (!rows.empty()) rows.back() = 1;
    bool reduces = reduces_;
    for (const LoweredKernel& kernel : kernels) {
      const bool is_smaller = kernel.operands[0].id == Graph::kNone && broadcasts(kernel.sizes, sizes);
      const bool is_for_rows = reduces && kernel.sizes == rows;
      if (kernel.sizes != sizes && (kernel.reduces() || !(is_smaller || is_for_rows))) return false;
      reduces |= kernel.reduces();
      for (const LoweredKernel::Operand& operand : kernel.operands) {
        // Without its last dimension, what has an element for each row would be read as a row.
        if (rows_.contains(operand.id) && info(operand.id).sizes.size() != sizes.size()) return false;
      }
    }
    return !reduces || can_have_rows(kernels, sizes);
  }
  // Whether each kernel makes a tensor of its own, and the reductions suit each other and the rows.
  bool can_have_rows(const std::vector<LoweredKernel>& more, IntArrayRef sizes) const {
    int64_t added = 0;  // bytes of the elements that are added up: those of other dtypes have another order
    std::set<std::pair<Graph::Id, int>> seen;
    for (const auto* kernels : {&kernels_, &more}) {
      for (const LoweredKernel& kernel : *kernels) {
        for (size_t i = 0; i < kernel.operands.size(); ++i) {
          const LoweredKernel::Operand& operand = kernel.operands[i];
          const bool is_temporary = operand.id == Graph::kNone;
          const int temporary = is_temporary && kernels == &more ? temporaries_ + operand.temporary : operand.temporary;
          if (!seen.emplace(operand.id, temporary).second && i == 0) return false;
        }
        if (!kernel.reduces()) continue;
        const int64_t size = element_size(kernel.operands[1].dtype);
        if (!suits_rows(sizes, size, device_)) return false;
        if (kernel.how != Reduces::InOrder) continue;
        if (added && added != size) return false;
        added = size;
      }
    }
    return true;
  }
  // Whether the memory of some of these is among those that a set or a map has.
  bool any_in(const std::vector<Graph::Id>& ids, const auto& memories) const {
    return std::ranges::any_of(ids, [&](Graph::Id id) { return memories.contains(info(id).memory); });
  }
  bool reads_follower(const Graph::Call& call) const {
    return any_in(Graph::tensors_of(call.arguments), made_by_followers_);
  }
  // Whether the call writes nothing that a follower reads.
  bool spares_followers(const Graph::Call& call) const { return !any_in(call.written, read_by_followers_); }
  // What a view of the loop's tensors stands for.
  Graph::Id made_by_loop(Graph::Id id) const {
    const auto found = stands_for_.find(id);
    return found == stands_for_.end() ? id : found->second;
  }
  // In dimension d of the loop; 0 where there is one element.
  int64_t stride_of(Graph::Id id, size_t d) const {
    const Graph::TensorInfo& tensor = info(id);
    return d >= tensor.sizes.size() || tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
  }
  // What the loop writes is read at the same place of the loop alone.
  bool fits(Graph::Id id) const {
    const auto [first, last] = written_.equal_range(info(id).memory);
    return std::all_of(first, last, [&](const auto& each) { return each.second == made_by_loop(id); });
  }
  // And what it reads at another place it does not write: an element may be written before it is read.
  bool is_apart(Graph::Id read, const std::vector<Graph::Id>& written) const {
    return std::ranges::none_of(written,
                                [&](Graph::Id id) { return id != read && info(id).memory == info(read).memory; });
  }

  const Graph& graph_;
  DimVector sizes_;
  Device device_;
  std::vector<LoweredKernel> kernels_;
  std::string names_;
  std::set<Graph::Id> made_, read_, rows_;
  std::map<Graph::Id, Graph::Id> stands_for_;  // views
  bool reduces_ = false, writes_in_place_ = false;
  std::set<int32_t> memories_, read_by_followers_, made_by_followers_;
  std::multimap<int32_t, Graph::Id> written_;
  int temporaries_ = 0, most_ = 0;
};

// Whether the backend of the kernels' outputs can fuse them: all operands lie there, or are numbers on the CPU.
bool can_fuse(const Graph& graph, const std::vector<LoweredKernel>& kernels) {
  const Device device = graph.info(kernels.back().operands[0].id).device;
  Backend* const backend = backend_or_null(device.type);
  return backend && std::ranges::all_of(kernels, [&](const LoweredKernel& kernel) {
           std::vector<ScalarType> dtypes;
           for (const LoweredKernel::Operand& operand : kernel.operands) {
             dtypes.push_back(operand.dtype);
             if (operand.id == Graph::kNone || graph.info(operand.id).device == device) continue;
             if (!graph.info(operand.id).device.is_cpu() || !graph.info(operand.id).sizes.empty()) return false;
           }
           return backend->can_fuse(*kernel.call, dtypes);
         });
}

// Which tensors the calls that are not `inside` read.
std::set<Graph::Id> seen_outside(const Graph& graph, const std::vector<size_t>& inside) {
  const std::vector<Graph::Id> ends = graph.read_at_end();
  std::set<Graph::Id> seen(ends.begin(), ends.end());
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (std::ranges::binary_search(inside, i)) continue;
    for (const Graph::Id id : Graph::tensors_of(graph.calls[i].arguments)) seen.insert(id);
  }
  return seen;
}

// The views among `members` that are seen; so is then what they are of.
std::vector<Graph::Call> views_seen(const Graph& graph, const std::vector<size_t>& members, std::set<Graph::Id>& seen) {
  std::vector<Graph::Call> views;
  for (const size_t i : members | std::views::reverse) {
    const Graph::Call& call = graph.calls[i];
    if (!call.op->is_view() || !seen.contains(call.result())) continue;
    seen.insert(call.argument(0));
    views.push_back(call);
  }
  std::ranges::reverse(views);
  return views;
}

}  // namespace

void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels) {
  std::vector<Graph::Call> calls;
  std::vector<size_t> members, followers;
  std::optional<Group> group;
  std::deque<size_t> rest(graph.calls.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  const auto close = [&] {
    if (group->kernels() >= fewest_kernels) {
      std::set<Graph::Id> seen = seen_outside(graph, members);
      const std::vector<Graph::Call> views = views_seen(graph, members, seen);
      calls.push_back(group->loop(seen));
      calls.insert(calls.end(), views.begin(), views.end());
    } else {
      for (const size_t i : members) calls.push_back(graph.calls[i]);
    }
    rest.insert(rest.begin(), followers.begin(), followers.end());  // they may make loops of their own
    members.clear();
    followers.clear();
    group.reset();
  };
  while (!rest.empty() || group) {
    if (rest.empty()) {
      close();
      continue;
    }
    const size_t i = rest.front();
    rest.pop_front();
    const Graph::Call& call = graph.calls[i];
    const auto kernels = lowered_kernels(graph, call);
    const bool is_fusible = kernels && can_fuse(graph, *kernels);
    if (group && (is_fusible ? group->add(call, *kernels) : group->add_view(call))) {
      members.push_back(i);
    } else if (group && !is_fusible && group->is_independent_of(call)) {
      calls.push_back(call);
    } else if (group && group->add_follower(call, is_fusible)) {
      followers.push_back(i);
    } else if (group) {
      rest.push_front(i);
      close();
    } else if (is_fusible && group.emplace(graph).add(call, *kernels)) {
      members.push_back(i);
    } else {
      group.reset();
      calls.push_back(call);
    }
  }
  graph.calls = std::move(calls);
}

}  // namespace rush::compiler
