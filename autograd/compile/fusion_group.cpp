#include "autograd/compile/fusion_group.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "autograd/compile/fused_loop.h"
#include "autograd/compile/graph_dump.h"
#include "core/device/backend.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

bool broadcasts(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1 && from[d] != to[lead + d]) return false;
  }
  return true;
}

bool reduce(const std::vector<LoweredKernel>& kernels) { return std::ranges::any_of(kernels, &LoweredKernel::reduces); }
// The sizes of the loop that kernels would begin.
const DimVector& walked(const std::vector<LoweredKernel>& kernels) {
  const auto first = std::ranges::find_if(kernels, &LoweredKernel::reduces);
  return first == kernels.end() ? kernels.back().sizes : first->sizes;
}
bool has_one_element(IntArrayRef sizes) { return checked_numel(sizes) == 1; }
// Whether elements of the loop's sizes follow each other at one distance, or are one.
bool lies_in_one_row(const Graph::TensorInfo& tensor, IntArrayRef sizes) {
  if (has_one_element(tensor.sizes)) return true;
  if (!(IntArrayRef(tensor.sizes) == sizes)) return false;
  std::optional<int64_t> next;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (next && tensor.strides[d] != *next) return false;
    next = tensor.strides[d] * sizes[d];
  }
  return true;
}
// Of an element-wise kernel on one element for each row or fewer, where `sizes` are the loop's.
bool is_of_rows(const LoweredKernel& kernel, IntArrayRef sizes) {
  return sizes.back() != 1 && (kernel.sizes.empty() || kernel.sizes.back() == 1);
}

// What kernels use of the graph's tensors.
std::vector<Graph::Id> tensors_of(const std::vector<LoweredKernel>& kernels) {
  std::vector<Graph::Id> ids;
  for (const LoweredKernel& kernel : kernels) {
    for (const LoweredKernel::Operand& operand : kernel.operands) {
      if (operand.id != Graph::kNone) ids.push_back(operand.id);
    }
  }
  return ids;
}

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

}  // namespace

bool suits_rows(IntArrayRef sizes, int64_t element_size, Device device) {
  constexpr int64_t kFewestColumns = 16, kFewRows = 64, kManyRows = 4096, kLongRow = 65536;
  const int64_t columns = sizes.back(), most_columns = device.is_cpu() ? 16384 : 65536;
  const int64_t rows = checked_numel(sizes.slice(0, sizes.size() - 1));
  if (columns < kFewestColumns || columns > most_columns || rows > std::numeric_limits<int32_t>::max()) return false;
  const bool are_enough = rows >= kFewRows || columns <= kManyRows || (rows == 1 && !device.is_cpu());
  return columns * element_size < kLongRow ? are_enough : rows >= kManyRows;
}

bool are_apart(const Graph::TensorInfo& a, const Graph::TensorInfo& b) {
  if (a.storage_offset > b.storage_offset) return are_apart(b, a);
  if (a.strides != b.strides) return false;
  const int64_t distance = b.storage_offset - a.storage_offset;
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    const int64_t start = a.strides[d] > 0 ? distance / a.strides[d] : 0;
    if (start < a.sizes[d] || start * a.strides[d] != distance) continue;
    DimVector both = a.sizes;
    both[d] = b.sizes[d];
    const bool are_alike = both == b.sizes;
    both[d] += start;
    if (are_alike && !may_overlap(both, a.strides)) return true;
  }
  return false;
}

std::optional<std::vector<LoweredKernel>> fusible_kernels(const Graph& graph, const Graph::Call& call) {
  std::optional<std::vector<LoweredKernel>> kernels = lowered_kernels(graph, call);
  if (!kernels || !can_fuse(graph, *kernels)) return std::nullopt;
  return kernels;
}

bool FusionGroup::add(const Graph::Call& call, const std::vector<LoweredKernel>& kernels) {
  const Device device = info(kernels.back().operands[0].id).device;
  if (!kernels_.empty() && (device != device_ || !is_short_with(kernels))) return false;
  device_ = device;
  if (!fits_sizes(kernels)) return false;
  const auto writes_in_place = [](const Graph::Call& each) { return !each.written.empty(); };
  if ((reduces_ || reduce(kernels)) && (writes_in_place(call) || std::ranges::any_of(calls_, writes_in_place)))
    return false;
  if (!fits_memory(tensors_of(kernels), call.written) || touches_followers(call)) return false;
  if (kernels_.empty()) sizes_ = walked(kernels);
  note_results(call);
  place(kernels);
  calls_.push_back(call);
  return true;
}

// A compiler takes long for thousands of kernels in one, whose parameters, addresses and strides, may have 32 KB.
bool FusionGroup::is_short_with(const std::vector<LoweredKernel>& kernels) const {
  constexpr size_t kMostKernels = 256, kMostParameters = 4000;
  const size_t tensors = read_.size() + tensors_of(kernels).size();
  return kernels_.size() + kernels.size() <= kMostKernels && tensors * (1 + sizes_.size()) <= kMostParameters;
}

void FusionGroup::note_results(const Graph::Call& call) {
  for (const Graph::Id id : Graph::tensors_of(call.results)) {
    if (read_.contains(id) || std::ranges::find(call.written, id) != call.written.end()) continue;
    if (made_.insert(id).second) written_.emplace(info(id).memory, id);
  }
  for (const Graph::Id id : call.written) written_.emplace(info(id).memory, id);
}

// Gives the temporaries of a call numbers of the loop.
void FusionGroup::place(const std::vector<LoweredKernel>& kernels) {
  const int base = temporaries_;
  for (const LoweredKernel& kernel : kernels) {
    LoweredKernel placed = kernel;
    reduces_ |= kernel.reduces();
    is_one_row_ |= kernel.takes_all;
    for (LoweredKernel::Operand& operand : placed.operands) {
      if (operand.id != Graph::kNone) {
        operand.id = made_by_loop(operand.id);
        read_.insert(operand.id);
        memories_.insert(info(operand.id).memory);
      } else {
        operand.temporary += base;
        temporaries_ = std::max(temporaries_, operand.temporary + 1);
      }
    }
    if (const Graph::Id out = placed.operands[0].id; out != Graph::kNone && gives_rows(placed)) rows_.insert(out);
    kernels_.push_back(std::move(placed));
  }
}

bool FusionGroup::add_view(const Graph::Call& call) {
  if (!call.op || !call.op->is_view() || call.results.size() != 1 || call.results[0].tensors.size() != 1 ||
      call.arguments[0].tensors.empty())
    return false;
  const Graph::Id view = call.results[0].tensors[0], base = made_by_loop(call.arguments[0].tensors[0]);
  if (!made_.contains(base) || info(view).storage_offset != info(base).storage_offset ||
      info(view).dtype != info(base).dtype || info(view).sizes.size() != sizes_.size())
    return false;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (stride_of(view, d) != stride_of(base, d)) return false;
  }
  stands_for_.emplace(view, base);
  views_.push_back(call);
  return true;
}

bool FusionGroup::add_follower(const Graph::Call& call, bool is_fusible) {
  constexpr int kMostFollowers = 16;  // they are looked at again
  if (!call.op || !call.written.empty() || call.is_random || followers_ == kMostFollowers) return false;
  if (reads_loop(call)) {
    if (call.op != &ops::sum_dim || is_fusible || reads_follower(call)) return false;
  } else if (!is_fusible && !reads_follower(call)) {
    return false;
  }
  ++followers_;
  for (const Graph::Id id : Graph::tensors_of(call.arguments)) read_by_followers_.insert(info(id).memory);
  for (const Graph::Id id : Graph::tensors_of(call.results)) made_by_followers_.insert(info(id).memory);
  return true;
}

std::vector<Graph::Call> FusionGroup::calls(std::vector<bool> is_seen) const {
  const std::vector<Graph::Call> views = views_seen(is_seen);
  const bool are_casts = std::ranges::all_of(calls_, [](const Graph::Call& call) { return call.op == &ops::_to_copy; });
  std::vector<Graph::Call> all = are_casts ? calls_ : std::vector<Graph::Call>{loop(is_seen)};
  all.insert(all.end(), views.begin(), views.end());
  return all;
}

Graph::Call FusionGroup::loop(const std::vector<bool>& is_seen) const {
  std::vector<FusedLoop::Place> places;
  std::map<std::pair<Graph::Id, int>, size_t> numbers;
  Graph::Call call{.name = str("fused(", compiler::joined(calls_, &Graph::Call::name), ')')};
  const auto place_of = [&](const LoweredKernel::Operand& operand, bool is_row) {
    const auto [at, is_new] = numbers.emplace(std::pair(operand.id, operand.temporary), places.size());
    if (!is_new) return at->second;
    FusedLoop::Place place{.is_row = is_row, .dtype = operand.dtype, .device = device_};
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
  // Of a call's kernels the last makes a tensor of the graph.
  const void* called_before = nullptr;
  std::vector<const void*> callers(kernels_.size());
  for (size_t i = kernels_.size(); i-- > 0; callers[i] = called_before) {
    const Graph::Id made = kernels_[i].operands[0].id;
    if (made != Graph::kNone) called_before = info(made).made_before;
  }
  std::vector<LoopDescription::Step> steps;
  for (const LoweredKernel& kernel : kernels_) {
    LoopDescription::Step step{kernel.call, {}, kernel.how, callers[steps.size()]};
    // A place that a kernel makes is the output of the first that has it.
    for (const LoweredKernel::Operand& operand : kernel.operands)
      step.places.push_back(place_of(operand, step.places.empty() && gives_rows(kernel)));
    steps.push_back(std::move(step));
  }
  for (const auto& [memory, id] : written_) {
    if (!made_.contains(id)) call.written.push_back(id);
  }
  call.fused = std::make_shared<FusedLoop>(sizes_, device_, std::move(places), std::move(steps), is_one_row_);
  return call;
}

bool FusionGroup::gives_rows(const LoweredKernel& kernel) const {
  return reduces_ && (kernel.reduces() || (is_one_row_ ? has_one_element(kernel.sizes) : is_of_rows(kernel, sizes_)));
}

// What a kernel leaves for the same call's alone, such as a number of another dtype, may be smaller.
bool FusionGroup::fits_sizes(const std::vector<LoweredKernel>& kernels) const {
  const DimVector& sizes = kernels_.empty() ? walked(kernels) : sizes_;
  DimVector rows = sizes;
  if (!rows.empty()) rows.back() = 1;
  bool reduces = reduces_, are_one = is_one_row_;
  for (const LoweredKernel& kernel : kernels) {
    if (kernel.reduces() && reduces && kernel.takes_all != are_one) return false;
    const bool is_smaller = kernel.operands[0].id == Graph::kNone && broadcasts(kernel.sizes, sizes);
    const bool has_rows_sizes =
        are_one ? has_one_element(kernel.sizes) : IntArrayRef(kernel.sizes) == IntArrayRef(rows);
    const bool is_for_rows = reduces && has_rows_sizes;
    if (!(IntArrayRef(kernel.sizes) == IntArrayRef(sizes)) && (kernel.reduces() || !(is_smaller || is_for_rows)))
      return false;
    reduces |= kernel.reduces();
    are_one |= kernel.takes_all;
    for (const LoweredKernel::Operand& operand : kernel.operands) {
      // Without its last dimension, what has an element for each row would be read as a row.
      if (!are_one && rows_.contains(operand.id) && info(operand.id).sizes.size() != sizes.size()) return false;
    }
  }
  return !reduces || can_have_rows(kernels, sizes, are_one);
}

// Whether each kernel makes a tensor of its own, and the reductions suit each other and the rows.
bool FusionGroup::can_have_rows(const std::vector<LoweredKernel>& more, const DimVector& sizes, bool are_one) const {
  const DimVector rows = are_one ? DimVector{checked_numel(sizes)} : sizes;
  int64_t added = 0;  // bytes of the elements that are added up: those of other dtypes have another order
  std::set<std::pair<Graph::Id, int>> seen;
  for (const auto* kernels : {&kernels_, &more}) {
    for (const LoweredKernel& kernel : *kernels) {
      for (size_t i = 0; i < kernel.operands.size(); ++i) {
        const LoweredKernel::Operand& operand = kernel.operands[i];
        const bool is_temporary = operand.id == Graph::kNone;
        const int temporary = is_temporary && kernels == &more ? temporaries_ + operand.temporary : operand.temporary;
        if (!seen.emplace(operand.id, temporary).second && i == 0) return false;
        if (are_one && !is_temporary && !lies_in_one_row(info(operand.id), sizes)) return false;
      }
      if (!kernel.reduces()) continue;
      const int64_t size = element_size(kernel.operands[1].dtype);
      if (!suits_rows(rows, size, device_)) return false;
      if (kernel.how != Reduces::InOrder) continue;
      if (added && added != size) return false;
      added = size;
    }
  }
  return true;
}

Graph::Id FusionGroup::made_by_loop(Graph::Id id) const {
  const auto found = stands_for_.find(id);
  return found == stands_for_.end() ? id : found->second;
}

// In dimension d of the loop; 0 where there is one element.
int64_t FusionGroup::stride_of(Graph::Id id, size_t d) const {
  const Graph::TensorInfo& tensor = info(id);
  return d >= tensor.sizes.size() || tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
}

// The views that are read outside; so is then what they are of.
std::vector<Graph::Call> FusionGroup::views_seen(std::vector<bool>& is_seen) const {
  std::vector<Graph::Call> views;
  for (const Graph::Call& call : views_ | std::views::reverse) {
    if (!is_seen[static_cast<size_t>(call.results[0].tensors[0])]) continue;
    is_seen[static_cast<size_t>(call.arguments[0].tensors[0])] = true;
    views.push_back(call);
  }
  std::ranges::reverse(views);
  return views;
}

}  // namespace rush::compiler
