#include "autograd/compile/result_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "autograd/compile/compile.h"
#include "core/device/generator.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/view.h"
#include "core/print/bracketed.h"
#include "core/str.h"
#include "core/tensor.h"

namespace rush::compiler {

namespace {

using Calls = std::span<const Graph::Call>;

Calls until_host(const std::vector<Graph::Call>& calls, size_t from) {
  const auto first = calls.begin() + static_cast<std::ptrdiff_t>(from);
  return {first, std::find_if(first, calls.end(), [](const Graph::Call& call) { return bool{call.host}; })};
}

// What the call writes to: what it writes in place, and memory that it makes.
std::vector<Graph::Id> writes(const Graph& graph, const Graph::Call& call) {
  std::vector<Graph::Id> ids = call.written;
  std::ranges::copy_if(Graph::tensors_of(call.results), std::back_inserter(ids),
                       [&](Graph::Id id) { return graph.info(id).memory == id; });
  return ids;
}

// Inputs, constants and generators as they are before calls write them.
class Before {
 public:
  Before(const Program& program, Calls calls) {
    const Graph& graph = program.graph();
    for (const Graph::Call& call : calls) {
      for (const Graph::Id id : call.written) written_.insert(graph.info(id).memory);
    }
    const auto save = [&](Graph::Id id) {
      held_.insert(graph.info(id).memory);
      if (writes(graph.info(id).memory)) saved_.emplace_back(program.at(id), program.at(id).clone());
    };
    std::ranges::for_each(graph.inputs, save);
    for (const Graph::Constant& constant : graph.constants) save(constant.id);
    for (const Graph::TensorInfo& tensor : graph.tensors) {
      if (tensor.device.is_meta()) continue;
      const Generator generator = default_generator(tensor.device);
      if (std::ranges::find(generators_, generator, &std::pair<Generator, State>::first) == generators_.end())
        generators_.emplace_back(generator, generator.get_state());
    }
  }
  bool holds(int32_t memory) const { return held_.contains(memory); }
  bool writes(int32_t memory) const { return written_.contains(memory); }
  void put_back() {
    for (auto& [tensor, values] : saved_) tensor.copy_(values);
    for (auto& [generator, state] : generators_) generator.set_state(state);
  }

 private:
  using State = std::vector<uint8_t>;

  std::set<int32_t> held_;     // memories of inputs and constants
  std::set<int32_t> written_;  // and of what the calls write in place
  std::vector<std::pair<Tensor, Tensor>> saved_;
  std::vector<std::pair<Generator, State>> generators_;
};

// Of what many calls computed in two orders, relative to the largest number of a tensor, or to 0.01. A wrong loop is
// wrong by more.
double tolerance(ScalarType dtype) {
  if (!is_floating_point(dtype) && !is_complex(dtype)) return 0;
  return element_size(dtype) < 4 ? 2e-2 : 1e-4;  // where a float64 was made of others, too
}

std::string place_in(IntArrayRef sizes, int64_t index) {
  std::vector<int64_t> place(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; index /= sizes[d]) place[d] = index % sizes[d];
  return bracketed(place);
}

// "element [0, 2] is 1.5, not 1.25"; empty where they are the same.
std::string difference(const Tensor& actual, const Tensor& expected) {
  if (actual.numel() == 0 || actual.equal(expected)) return "";
  const auto numbers = [](const Tensor& t) { return (t.is_complex() ? view_as_real(t) : t).cpu().to(kFloat64); };
  const Tensor a = numbers(actual), b = numbers(expected), size = b.abs();
  const double allowed = tolerance(actual.scalar_type());
  const Tensor largest = size.nan_to_num(0.0, 0.0, 0.0).amax();
  const Tensor close = a.eq(b)
                           .logical_or(a.isnan().logical_and(b.isnan()))
                           .logical_or((a - b).abs().le((size + largest + 0.01) * allowed));
  if (close.all().item<bool>()) return "";
  const int64_t index = close.logical_not().to(kInt64).argmax().item<int64_t>();
  const auto at = [&](const Tensor& t) { return t.reshape({-1}).select(0, index).item<double>(); };
  return str("element ", place_in(a.sizes(), index), " is ", at(a), ", not ", at(b));
}

}  // namespace

ResultCheck::ResultCheck(Graph unfused) : unfused_(std::move(unfused)) {}

void ResultCheck::run_calls(Program& program, const std::vector<Tensor>& inputs) {
  const Program::Scope scope(unfused_, inputs);
  const Graph& graph = program.graph();
  const auto run_between_host_calls = [&](Calls fused, Calls plain, size_t number) {
    Before before(unfused_, plain);
    for (const Graph::Call& call : plain) unfused_.run_call(call);
    std::map<int32_t, size_t> last_writer;
    std::map<Graph::Id, Tensor> expected;
    for (size_t i = 0; i < fused.size(); ++i) {
      for (const Graph::Id id : writes(graph, fused[i])) {
        const int32_t memory = graph.info(id).memory;
        last_writer[memory] = i;
        // A pass may have made the tensor, or had other numbers put into memory that is read no more.
        const bool is_made_here = std::ranges::find(fused[i].written, id) == fused[i].written.end();
        const bool is_of_both = static_cast<size_t>(id) < unfused_.graph().tensors.size();
        expected.erase(id);
        if (!is_of_both || !(is_made_here || before.writes(memory))) continue;
        const Tensor value = unfused_.at(id);
        if (value.defined()) expected[id] = before.holds(memory) ? value.clone() : value;
      }
    }
    before.put_back();
    for (const Graph::Call& call : fused) program.run_call(call);
    for (size_t i = 0; i < fused.size(); ++i) {
      for (const Graph::Id id : writes(graph, fused[i])) {
        if (!expected.contains(id) || last_writer.at(graph.info(id).memory) != i) continue;
        const std::string wrong = difference(program.at(id), expected[id]);
        RUSH_CHECK_AS(DifferenceError, wrong.empty(), "compile: call ", number + i, ", ", fused[i].name,
                      ", differs from its operators one by one: of %", id, " ", wrong);
      }
    }
  };
  const std::vector<Graph::Call>&all = graph.calls, &plain = unfused_.graph().calls;
  for (size_t i = 0, j = 0;; ++i, ++j) {
    const Calls mine = until_host(all, i), others = until_host(plain, j);
    run_between_host_calls(mine, others, i);
    i += mine.size();
    j += others.size();
    if (i == all.size()) return;
    program.run_call(all[i]);
  }
}

}  // namespace rush::compiler
