// Computes what is made of concatenated tensors part by part: Note [Concatenations].
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "autograd/compile/fusion_group.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/traced_part.h"
#include "autograd/compile/uses.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/join.h"
#include "core/ops/view/view.h"

namespace rush::compiler {

namespace {

// Where a part lies along the dimension.
struct Range {
  int64_t start, length;
  auto operator<=>(const Range&) const = default;
};

// One call of cat, and the calls around it that can be done for each part alone.
class Concatenation {
 public:
  Concatenation(Graph& graph, size_t at)
      : graph_(graph), uses_(graph), cat_(graph.calls[at]), at_(at), end_(graph.calls.size()) {}

  // Puts calls for each part in the place of those. False, with the graph as it was, where they must stay.
  bool split() {
    if (!find_ranges()) return false;
    do {
      calls_ = {at_};
      add_readers();
      while (add_makers()) {
      }
    } while (ends_earlier());
    if (!find_roots() || is_written_meanwhile()) return false;
    std::vector<Graph::Call> parts =
        traced_calls(graph_, inputs_, roots_, [&](const std::vector<Tensor>& inputs) { return parts_of(inputs); });
    if (parts.empty()) return false;
    std::map<size_t, std::vector<Graph::Call>> instead;
    for (const size_t i : calls_) instead[i] = {};
    instead[last()] = std::move(parts);
    exchange_calls(graph_, std::move(instead));
    return true;
  }

 private:
  static constexpr size_t kMostParts = 4, kMostCalls = 32;

  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.info(id); }
  const Graph::TensorInfo& whole() const { return info(cat_.result()); }
  size_t last() const { return *calls_.rbegin(); }

  bool find_ranges() {
    const std::vector<Graph::Id>& parts = cat_.arguments[0].tensors;
    if (parts.size() < 2 || parts.size() > kMostParts) return false;
    const auto dims = static_cast<int64_t>(whole().sizes.size());
    dim_ = static_cast<size_t>(wrap_dim(cat_.arguments[1].value.as<int64_t>(), dims, "cat"));
    int64_t start = 0;
    for (const Graph::Id part : parts) {
      const Graph::TensorInfo& each = info(part);
      if (each.dtype != whole().dtype || each.sizes.size() != whole().sizes.size()) return false;
      const int64_t length = each.sizes[dim_];
      if (length < 2) return false;  // one would broadcast
      ranges_.push_back({start, length});
      start += length;
    }
    return true;
  }

  bool is_of_part(const Graph::TensorInfo& tensor) const {
    DimVector sizes = tensor.sizes;
    if (sizes.size() != whole().sizes.size()) return false;
    sizes[dim_] = whole().sizes[dim_];
    return sizes == whole().sizes;
  }

  // Whether the call computes each element from those at the same place.
  bool is_element_wise(size_t i) const {
    const Graph::Call& call = graph_.calls[i];
    if (!call.op || call.has_effect() || call.results.size() != 1 || call.results[0].tensors.size() != 1) return false;
    const std::optional<std::vector<LoweredKernel>> kernels = fusible_kernels(graph_, call);
    return kernels && std::ranges::none_of(*kernels, &LoweredKernel::reduces);
  }

  // Where along the dimension a view begins that takes nothing but a range of it.
  std::optional<int64_t> start_of(Graph::Id view) const {
    const std::optional<size_t> at = uses_.maker(view);
    if (!at || !graph_.calls[*at].op || !graph_.calls[*at].op->is_view()) return std::nullopt;
    const Graph::TensorInfo &base = info(graph_.calls[*at].argument(0)), &part = info(view);
    const int64_t stride = base.sizes == whole().sizes ? base.strides[dim_] : 0;
    if (stride <= 0 || part.strides != base.strides || !is_of_part(part)) return std::nullopt;
    const int64_t offset = part.storage_offset - base.storage_offset;
    if (offset % stride != 0 || offset / stride > whole().sizes[dim_]) return std::nullopt;
    return offset / stride;
  }
  bool takes_a_range(const Graph::Call& call) const {
    return call.op && call.op->is_view() && std::ranges::all_of(Graph::tensors_of(call.results), [&](Graph::Id id) {
             const std::optional<int64_t> start = start_of(id);
             return start && std::ranges::find(ranges_, Range{*start, info(id).sizes[dim_]}) != ranges_.end();
           });
  }

  // The calls that follow on elements of the whole.
  void add_readers() {
    std::vector<Graph::Id> rest = {cat_.result()};
    while (!rest.empty() && calls_.size() < kMostCalls) {
      const Graph::Id id = rest.back();
      rest.pop_back();
      for (const size_t reader : uses_.readers(id)) {
        const Graph::Call& call = graph_.calls[reader];
        if (reader >= end_ || calls_.contains(reader) || call.results.empty() ||
            info(call.result()).sizes != whole().sizes || !is_element_wise(reader))
          continue;
        calls_.insert(reader);
        rest.push_back(call.result());
      }
    }
  }

  bool is_read_inside(Graph::Id id) const {
    return !uses_.is_seen_outside(id) &&
           std::ranges::all_of(uses_.readers(id), [&](size_t reader) { return calls_.contains(reader); });
  }
  // The calls that make what is read here alone. Whether there are any.
  bool add_makers() {
    std::set<size_t> makers;
    for (const size_t i : calls_) {
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].arguments)) {
        const std::optional<size_t> at = uses_.maker(id);
        if (!at || calls_.contains(*at) || calls_.size() + makers.size() >= kMostCalls) continue;
        const Graph::Call& maker = graph_.calls[*at];
        if (!std::ranges::all_of(Graph::tensors_of(maker.results),
                                 [&](Graph::Id each) { return is_read_inside(each); }))
          continue;
        if (takes_a_range(maker) || (is_of_part(info(id)) && is_element_wise(*at))) makers.insert(*at);
      }
    }
    calls_.insert(makers.begin(), makers.end());
    return !makers.empty();
  }

  // Where a call in between reads what would not be there yet, all ends before that call. Whether it now does.
  bool ends_earlier() {
    const size_t end = end_;
    for (const size_t i : calls_) {
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].results)) {
        for (const size_t reader : uses_.readers(id)) {
          if (reader < last() && !calls_.contains(reader)) end_ = std::min(end_, reader);
        }
      }
    }
    return end_ < end;
  }

  // What is read elsewhere, and what comes from there. False where the concatenated tensor itself is.
  bool find_roots() {
    std::set<Graph::Id> made, read;
    for (const size_t i : calls_) {
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].results)) made.insert(id);
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].arguments)) read.insert(id);
    }
    for (const Graph::Id id : made) {
      if (is_read_inside(id)) continue;
      if (id == cat_.result() || info(id).sizes != whole().sizes) return false;
      roots_.push_back(id);
    }
    std::ranges::set_difference(read, made, std::back_inserter(inputs_));
    return !roots_.empty() && !inputs_.empty();
  }
  bool is_written_meanwhile() const {
    return std::ranges::any_of(inputs_, [&](Graph::Id id) { return uses_.is_written(id, *calls_.begin(), last()); });
  }

  // The roots, on the meta device. Views come first: nothing of a loop may stand between its calls.
  std::vector<Tensor> parts_of(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs_.size(); ++i) given_[inputs_[i]] = inputs[i];
    std::vector<Tensor> results, targets;
    for (const Graph::Id root : roots_) {
      const Graph::TensorInfo& like = info(root);
      results.push_back(empty_strided(like.sizes, like.strides, TensorOptions(like.dtype).device(kMeta)));
      for (const auto& [start, length] : ranges_)
        targets.push_back(results.back().narrow(static_cast<int64_t>(dim_), start, length));
    }
    for (size_t i = 0; i < ranges_.size(); ++i) {
      for (size_t r = 0; r < roots_.size(); ++r) targets[r * ranges_.size() + i].copy_(computed(roots_[r], ranges_[i]));
    }
    given_.clear();  // a tracer asks who holds what it has seen
    parts_.clear();
    return results;
  }

  // The part of a tensor at a range; a tensor that is a part, or is repeated, as it is.
  Tensor computed(Graph::Id id, const Range& range) {
    const bool is_whole = info(id).sizes == whole().sizes;
    Tensor& known = parts_[{id, range}];
    if (known.defined()) return known;
    if (id == cat_.result()) {
      const auto part = std::ranges::find(ranges_, range) - ranges_.begin();
      return known = computed(cat_.arguments[0].tensors[static_cast<size_t>(part)], range);
    }
    const std::optional<size_t> at = uses_.maker(id);
    if (!at || !calls_.contains(*at)) return known = narrowed(given_.at(id), is_whole, range);
    const Graph::Call& call = graph_.calls[*at];
    if (call.op->is_view()) {
      return known = computed(call.argument(0), {*start_of(id), info(id).sizes[dim_]});
    }
    Stack stack;
    for (const Graph::Argument& argument : call.arguments) {
      std::vector<Tensor> tensors;
      for (const Graph::Id each : argument.tensors) {
        tensors.push_back(each == Graph::kNone ? Tensor() : computed(each, range));
      }
      stack.push_back(argument.value.is<Device>() ? Value(Device(kMeta))
                                                  : with_tensors(argument.value, std::move(tensors)));
    }
    call.op->call_boxed(stack);
    return known = stack[0].as<Tensor>();
  }
  // Whether it is whole or has the dimension's size where others broadcast.
  Tensor narrowed(const Tensor& t, bool is_whole, const Range& range) const {
    const int64_t from_end = static_cast<int64_t>(dim_) - static_cast<int64_t>(whole().sizes.size());
    const bool has_all = is_whole || (-from_end <= t.dim() && t.size(from_end) == whole().sizes[dim_]);
    return has_all ? t.narrow(from_end, range.start, range.length) : t;
  }

  Graph& graph_;
  const Uses uses_;
  const Graph::Call cat_;
  const size_t at_;
  std::set<size_t> calls_;  // that become calls on parts
  size_t end_;              // they are before this one
  size_t dim_ = 0;
  std::vector<Range> ranges_;
  std::vector<Graph::Id> inputs_, roots_;
  std::map<Graph::Id, Tensor> given_;
  std::map<std::pair<Graph::Id, Range>, Tensor> parts_;
};

}  // namespace

void split_concatenations(Graph& graph) {
  for (size_t i = graph.calls.size(); i-- > 0;) {
    if (graph.calls[i].op == &ops::cat) Concatenation(graph, i).split();
  }
}

}  // namespace rush::compiler
