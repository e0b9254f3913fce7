// Computes again what would be kept from the forward pass to the backward pass: Note [Rematerialisation].
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "autograd/compile/lowering.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/uses.h"
#include "core/ops/nn/norm.h"

namespace rush::compiler {

namespace {

// What shares one storage, which a call made: from there on it is held until the last call that uses it is done.
struct Life {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  std::vector<Graph::Id> ids = {};

  bool holds(size_t call) const { return first <= call && call <= last; }
};

class Rematerialiser {
 public:
  explicit Rematerialiser(Graph& graph) : graph_(graph) { look(); }

  void run(double budget) {
    const double most = budget * static_cast<double>(held_at(busiest()));
    while (static_cast<double>(held_at(busiest())) > most && compute_one_again()) look();
  }

  void compute_beside_readers() {
    for (size_t i = graph_.calls.size(); i-- > 0;) {
      const std::optional<Plan> plan = plan_beside_reader(i);
      if (!plan) continue;
      apply(*plan);
      look();
    }
  }

 private:
  // A way to have a storage again: these calls, before call `at`, instead of holding it since the forward pass.
  struct Plan {
    std::set<size_t> calls = {};
    std::set<int32_t> held_longer = {};  // storages that it reads
    size_t at = 0;
    int64_t gain = 0;  // bytes
  };
  static constexpr size_t kMostCalls = 12;

  void look() {
    uses_.emplace(graph_);
    lives_.clear();
    std::set<int32_t> given;
    for (const Graph::Id id : graph_.inputs) given.insert(graph_.info(id).memory);
    for (const Graph::Constant& constant : graph_.constants) given.insert(graph_.info(constant.id).memory);
    const auto see = [&](Graph::Id id, size_t call) {
      const Graph::TensorInfo& info = graph_.info(id);
      if (given.contains(info.memory)) return;
      Life& life = lives_.try_emplace(info.memory, Life{.first = call}).first->second;
      life.bytes = std::max(life.bytes, info.nbytes());
      life.last = call;
      if (std::ranges::find(life.ids, id) == life.ids.end()) life.ids.push_back(id);
    };
    for (size_t i = 0; i < graph_.calls.size(); ++i) {
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].arguments)) see(id, i);
      for (const Graph::Id id : Graph::tensors_of(graph_.calls[i].results)) see(id, i);
    }
    for (const Graph::Id id : graph_.read_at_end()) see(id, graph_.calls.size());
    if (!graph_.backward) return;
    for (const Graph::Gradient& each : graph_.backward->found) {
      if (each.gradient != Graph::kNone) see(each.gradient, graph_.calls.size());
    }
  }

  int64_t held_at(size_t call) const {
    int64_t bytes = 0;
    for (const auto& [memory, life] : lives_) bytes += life.holds(call) ? life.bytes : 0;
    return bytes;
  }

  // The call during which most is held: the last of the forward pass where another program has the backward pass.
  size_t busiest() const {
    if (graph_.backward) return std::max<size_t>(graph_.backward->first_call, 1) - 1;
    std::vector<int64_t> change(graph_.calls.size() + 2, 0);
    for (const auto& [memory, life] : lives_) {
      change[life.first] += life.bytes;
      change[life.last + 1] -= life.bytes;
    }
    std::inclusive_scan(change.begin(), change.end(), change.begin());
    return static_cast<size_t>(std::ranges::max_element(change) - change.begin());
  }

  bool is_written(Graph::Id id) const { return uses_->is_written_before(id, graph_.calls.size()); }

  // Whether a call takes little time for what it makes, and makes the same each time.
  bool is_cheap(const Graph::Call& call) const {
    if (call.has_effect()) return false;
    return call.op == &ops::native_layer_norm || call.op == &ops::_fused_rms_norm ||
           lowered_kernels(graph_, call).has_value();
  }

  // Of its operator, whatever the sizes are.
  bool is_element_wise(const Graph::Call& call) const {
    if (!call.op || call.has_effect()) return false;
    const auto [known, is_new] = element_wise_.try_emplace(call.op, false);
    if (is_new) {
      const std::optional<std::vector<LoweredKernel>> kernels = lowered_kernels(graph_, call);
      known->second = kernels && std::ranges::none_of(*kernels, &LoweredKernel::reduces);
    }
    return known->second;
  }

  // Nothing unless later readers, which a loop of call `i` cannot have, could compute its result in theirs from what is
  // held anyway.
  std::optional<Plan> plan_beside_reader(size_t i) const {
    const Graph::Call& call = graph_.calls[i];
    if (!is_element_wise(call) || call.op->is_view() || call.results.size() != 1) return {};
    const Graph::Id id = call.result();
    const std::vector<size_t>& readers = uses_->readers(id);
    if (readers.size() < 2 || made_again_.contains(id) || uses_->is_seen_outside(id) || is_written(id)) return {};
    const auto is_apart = [&](size_t reader) {
      return std::any_of(graph_.calls.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         graph_.calls.begin() + static_cast<std::ptrdiff_t>(reader), [&](const Graph::Call& between) {
                           return !(between.op && between.op->is_view()) && !is_element_wise(between);
                         });
    };
    const auto late = std::ranges::find_if(readers, is_apart);
    if (late == readers.begin() || late == readers.end() || !std::all_of(late, readers.end(), [&](size_t reader) {
          const Graph::Call& reading = graph_.calls[reader];
          return is_element_wise(reading) && !reading.op->is_view() &&
                 graph_.info(reading.result()).sizes == graph_.info(id).sizes;
        }))
      return {};
    for (const Graph::Id from : Graph::tensors_of(call.arguments)) {
      const auto source = lives_.find(graph_.info(from).memory);
      const bool is_held = source == lives_.end() || source->second.last >= *late;
      if (!is_held || uses_->is_written(from, i, *late)) return {};
    }
    return Plan{.calls = {i}, .at = *late};
  }

  // Nothing where what it is made from took long to make, or is as large.
  std::optional<Plan> plan_for(const Life& life, size_t busiest) const {
    Plan plan{.at = graph_.calls.size(), .gain = life.bytes};
    std::vector<Graph::Id> wanted;
    for (const Graph::Id id : life.ids) {
      const std::optional<size_t> maker = uses_->maker(id);
      const std::vector<size_t>& readers = uses_->readers(id);
      if (!maker || made_again_.contains(id) || uses_->is_seen_outside(id) || std::ranges::count(readers, busiest))
        return {};
      const auto late = std::ranges::upper_bound(readers, busiest);
      if (late == readers.end() || *maker > busiest) continue;  // views that are made late read what is wanted
      plan.at = std::min(plan.at, *late);
      wanted.push_back(id);
    }
    const bool is_possible =
        !wanted.empty() && std::ranges::all_of(wanted, [&](Graph::Id id) { return add_maker(id, life, plan); });
    return is_possible && plan.gain > 0 ? std::optional(plan) : std::nullopt;
  }

  // Adds the call that makes `id`, and those before it whose results are not held until then. False for a call that may
  // not be made again.
  bool add_maker(Graph::Id id, const Life& life, Plan& plan) const {
    const std::optional<size_t> maker = uses_->maker(id);
    if (!maker || is_written(id)) return false;
    if (plan.calls.contains(*maker)) return true;
    const Graph::Call& call = graph_.calls[*maker];
    const bool is_view = call.op && call.op->is_view();
    if (plan.calls.size() == kMostCalls || !(is_view || is_cheap(call))) return false;
    plan.calls.insert(*maker);
    for (const Graph::Id from : Graph::tensors_of(call.arguments)) {
      const auto source = lives_.find(graph_.info(from).memory);
      if (uses_->is_written(from, *maker, plan.at)) return false;
      const bool is_let_go = source != lives_.end() && &source->second == &life;
      if (source == lives_.end() || (source->second.last >= plan.at && !is_let_go)) continue;
      Plan with = plan;
      if (add_maker(from, life, with)) {
        plan = std::move(with);
      } else if (is_view || is_let_go) {
        return false;
      } else if (plan.held_longer.insert(source->first).second) {
        plan.gain -= source->second.bytes;
      }
    }
    return true;
  }

  bool compute_one_again() {
    const size_t when = busiest();
    std::vector<const Life*> largest_first;
    for (const auto& [memory, life] : lives_) {
      if (life.holds(when)) largest_first.push_back(&life);
    }
    std::ranges::stable_sort(largest_first, std::greater(), &Life::bytes);
    std::optional<Plan> best;
    for (const Life* const life : largest_first) {
      if (best && life->bytes <= best->gain) break;
      std::optional<Plan> plan = plan_for(*life, when);
      if (plan && (!best || plan->gain > best->gain)) best = std::move(plan);
    }
    if (best) apply(*best);
    return best.has_value();
  }

  void apply(const Plan& plan) {
    std::map<Graph::Id, Graph::Id> again;
    std::vector<Graph::Call> calls;
    for (const size_t i : plan.calls) {
      Graph::Call call = graph_.calls[i];
      call.rename(again);
      for (Graph::Argument& result : call.results) {
        for (Graph::Id& id : result.tensors) {
          if (id == Graph::kNone) continue;
          const Graph::Id made = graph_.add(graph_.info(id));
          if (call.op->is_view()) share_memory(graph_, made, call.argument(0));
          again[id] = made;
          made_again_.insert(made);
          id = made;
        }
      }
      calls.push_back(std::move(call));
    }
    for (size_t i = plan.at; i < graph_.calls.size(); ++i) {
      Graph::Call& call = graph_.calls[i];
      call.rename(again);
      if (!call.op || !call.op->is_view()) continue;
      for (const Graph::Id id : Graph::tensors_of(call.results))
        graph_.info(id).memory = graph_.info(call.argument(0)).memory;
    }
    graph_.calls.insert(graph_.calls.begin() + static_cast<std::ptrdiff_t>(plan.at), calls.begin(), calls.end());
  }

  Graph& graph_;
  std::optional<Uses> uses_;
  std::map<int32_t, Life> lives_;   // by memory
  std::set<Graph::Id> made_again_;  // once each
  mutable std::map<const OpBase*, bool> element_wise_;
};

}  // namespace

void rematerialise(Graph& graph, double budget) { Rematerialiser(graph).run(budget); }
void compute_beside_readers(Graph& graph) { Rematerialiser(graph).compute_beside_readers(); }

}  // namespace rush::compiler
