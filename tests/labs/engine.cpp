// Lab 5: the engine, on the graphs of graphs.h.
#include "autograd/engine.h"

#include <optional>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ready_nodes.h"
#include "tests/labs/exercise.h"
#include "tests/labs/graphs.h"

namespace rush::labs {
namespace {

// ---- accumulate ----

enum class Total { Undefined, Owned, Held, View, Expanded, Recorded };
const Values kFirst = {2, 2}, kSecond = {10, 100}, kSum = {12, 102};

struct SumResult {
  std::string threw;
  Values total, held, grad;  // held: a tensor of others that shows the memory of the total
  bool in_place = false;
};

SumResult learners_sum(Total kind) {
  SumResult result;
  Tensor total, held;
  double two = kFirst[0];
  if (kind == Total::Expanded) total = from_blob(&two, {2}, DimVector(1, 0), TensorOptions(kFloat64));
  if (kind != Total::Undefined && kind != Total::Expanded) total = tensor_of(kFirst);
  if (kind == Total::Held) held = total;
  if (kind == Total::View) total = (held = total).view({2});
  const Tensor grad = tensor_of(kind == Total::Undefined ? kSum : kSecond);
  const void* memory = total.defined() ? total.data_ptr() : nullptr;
  const AutoGradMode recording(kind == Total::Recorded);
  try {
    accumulate(total, grad);
    if (total.defined()) result.total = values_of(total);
    result.in_place = total.defined() && total.data_ptr() == memory;
  } catch (const std::exception& error) {
    result.threw = error.what();
  }
  if (held.defined()) result.held = values_of(held);
  result.grad = values_of(grad);
  return result;
}

std::string fault_of_values(const char* whose, const Values& got, const Values& right, const char* has_to) {
  for (size_t i = 0; i < right.size(); ++i) {
    if (i >= got.size()) return str("first wrong element: element ", i, " of ", whose, " is not there");
    if (got[i] == right[i]) continue;
    return str("first wrong element: element ", i, " of ", whose, " is ", got[i], " and has to ", has_to, " ",
               right[i]);
  }
  return {};
}

std::string fault_of_sum(Total kind, const SumResult& result) {
  if (!result.threw.empty()) return str("it threw: ", result.threw);
  const bool is_held = kind == Total::Held || kind == Total::View;
  for (const std::string& fault :
       {fault_of_values("the sum", result.total, kSum, "be"),
        is_held ? fault_of_values("the tensor that another holds", result.held, kFirst, "stay") : "",
        fault_of_values("the gradient that is added", result.grad, kind == Total::Undefined ? kSum : kSecond,
                        "stay")}) {
    if (!fault.empty()) return fault;
  }
  if (kind == Total::Recorded && result.in_place) return "it adds in place while the pass is recorded";
  if (kind == Total::Owned && !result.in_place) return "it takes new memory for a sum that nobody else sees";
  return {};
}

std::string describe_sum(Total kind) {
  switch (kind) {
    case Total::Undefined: return "accumulate(total, grad) with a total that is undefined";
    case Total::Owned: return "accumulate(total, grad) with a total that nobody else sees";
    case Total::Held: return "accumulate(total, grad) with a total that the caller of backward holds, too";
    case Total::View: return "accumulate(total, grad) with a total that is a view of a tensor that another holds";
    case Total::Expanded: return "accumulate(total, grad) with a total whose two elements are one in memory";
    default: return "accumulate(total, grad) with create_graph, in a pass that is recorded";
  }
}

Exercise accumulate_exercise() {
  Subject<Total, SumResult> subject;
  subject.function = "rush::accumulate";
  subject.inputs = {Total::Undefined, Total::Owned, Total::Held, Total::View, Total::Expanded, Total::Recorded};
  subject.learners = learners_sum;
  subject.describe = describe_sum;
  subject.fault = fault_of_sum;
  // A mistake that shows in calls of these kinds, and leaves those of others right.
  const auto shows_in = [](std::set<Total> kinds, std::function<bool(const SumResult&)> shows) {
    return [=](Total kind, const SumResult& result) {
      return kinds.count(kind) ? shows(result) : fault_of_sum(kind, result).empty();
    };
  };
  const std::set<Total> later = {Total::Owned, Total::Held, Total::View, Total::Expanded, Total::Recorded};
  const auto held_written = [](const SumResult& result) { return result.held == kSum; };
  subject.mistakes = {
      {"the last gradient wins: where a tensor is used twice its gradients are added, by += and not by =", nullptr,
       shows_in(later, [](const SumResult& result) { return result.total == kSecond; })},
      {"the first gradient wins: what arrives later has to be added to it", nullptr,
       shows_in(later, [](const SumResult& result) { return result.total == kFirst; })},
      {"the sum is written over the gradient that is added, which another node may be given, too", nullptr,
       shows_in(later, [](const SumResult& result) { return result.grad == kSum; })},
      {"the sum is written over a tensor that another holds: look at its use_count()", nullptr,
       [=](Total kind, const SumResult& result) {
         const bool matters = kind == Total::Undefined || kind == Total::Owned || kind == Total::Held;
         return kind == Total::Held ? held_written(result) : !matters || fault_of_sum(kind, result).empty();
       }},
      {"the sum is written over memory that another tensor shows, too: look at the use_count() of its storage", nullptr,
       shows_in({Total::View}, held_written)},
      {"the sum is written where two elements are one in memory: is_non_overlapping_and_dense() says whether none are",
       nullptr, shows_in({Total::Expanded}, [](const SumResult&) { return true; })},
      {"the sum is written in place while the pass is recorded: look at GradMode::is_enabled()", nullptr,
       shows_in({Total::Recorded}, [](const SumResult& result) { return result.in_place; })},
      {"every sum takes new memory: what nobody else sees can be added to in place", nullptr,
       shows_in({Total::Owned}, [](const SumResult& result) { return !result.in_place; })},
  };
  return exercise(std::move(subject));
}

// ---- ReadyNodes ----

// Gradients for the functions of a graph, and calls of take() between them.
struct Script {
  Graph graph;
  std::vector<Arrow> steps;  // to -1: take()
};
constexpr Arrow kTake{-1, 0};

struct ReadyResult {
  Runs taken;    // what take() gave
  Runs waiting;  // what is in `entries` in the end
  bool heap_agrees = true;
  bool taken_stays = false;  // a node that was taken is in `entries`, where the script ends
};

ReadyResult learners_ready(const Script& script) {
  Runs none;
  const auto nodes = nodes_of(script.graph, none);
  const auto number_of = [](const Node* node) { return static_cast<const Multiply*>(node)->number; };
  ReadyNodes ready;
  ReadyResult result;
  for (const Arrow& step : script.steps) {
    if (step.to >= 0) {
      ready.add(Edge{nodes[step.to], step.slot}, tensor_of({step.factor}));
    } else {
      const ReadyNodes::Entry entry = ready.take();
      result.taken.push_back({entry.node ? number_of(entry.node.get()) : 0, grads_of(entry.grads)});
      result.taken_stays = ready.entries.count(entry.node.get()) != 0;
      if (result.taken_stays) return result;
    }
  }
  for (const auto& [node, entry] : ready.entries) result.waiting.push_back({number_of(node), grads_of(entry.grads)});
  std::sort(result.waiting.begin(), result.waiting.end(), [](auto& a, auto& b) { return a.function < b.function; });
  const std::set<Node*> in_heap(ready.heap.begin(), ready.heap.end());
  result.heap_agrees =
      ready.heap.empty() || (in_heap.size() == ready.heap.size() && ready.heap.size() == ready.entries.size());
  return result;
}

enum class ReadyMistake { None, LastWins, OneSlot, Lowest, InOrder, LastFirst };

// What the gradients that have arrived add up to for one function.
Run run_of(const Script& script, const std::vector<Arrow>& arrived, int function, ReadyMistake mistake) {
  Run run{function, Grads(script.graph.functions[function].outputs)};
  for (const Arrow& arrow : arrived) {
    if (arrow.to != function) continue;
    auto& total = run.grads[mistake == ReadyMistake::OneSlot ? 0 : arrow.slot];
    total = (mistake == ReadyMistake::LastWins ? 0 : total.value_or(0)) + arrow.factor;
  }
  return run;
}

// The function that is taken first.
int next_of(const std::vector<Arrow>& arrived, ReadyMistake mistake) {
  std::vector<int> reached;  // in the order of their first gradients
  for (const Arrow& arrow : arrived) {
    if (std::find(reached.begin(), reached.end(), arrow.to) == reached.end()) reached.push_back(arrow.to);
  }
  switch (mistake) {
    case ReadyMistake::InOrder: return reached.front();
    case ReadyMistake::LastFirst: return reached.back();
    case ReadyMistake::Lowest: return *std::min_element(reached.begin(), reached.end());
    default: return *std::max_element(reached.begin(), reached.end());
  }
}

// The script with a list of all gradients that have arrived.
ReadyResult ready_result(const Script& script, ReadyMistake mistake) {
  std::vector<Arrow> arrived;
  ReadyResult result;
  for (const Arrow& step : script.steps) {
    if (step.to >= 0) {
      arrived.push_back(step);
      continue;
    }
    const int taken = next_of(arrived, mistake);
    result.taken.push_back(run_of(script, arrived, taken, mistake));
    std::erase_if(arrived, [&](const Arrow& arrow) { return arrow.to == taken; });
  }
  std::set<int> waiting;
  for (const Arrow& arrow : arrived) waiting.insert(arrow.to);
  for (int function : waiting) result.waiting.push_back(run_of(script, arrived, function, mistake));
  return result;
}

std::string describe_script(const Script& script) {
  std::string text;
  for (const Arrow& step : script.steps) {
    if (!text.empty()) text += "; ";
    text += step.to < 0 ? "take()" : str("add(", script.graph.functions[step.to].name);
    if (step.to >= 0) text += str(step.slot == 0 ? "" : str(" slot ", step.slot), ", ", step.factor, ")");
  }
  return str(text, ", of nodes made in the order ", script.graph.text);
}

std::string fault_of_ready(const Script& script, const ReadyResult& result) {
  const ReadyResult right = ready_result(script, ReadyMistake::None);
  for (size_t i = 0; i < result.taken.size(); ++i) {
    if (result.taken[i] == right.taken[i]) continue;
    return str("first wrong element: take() number ", i + 1, " gives ", show(script.graph, result.taken[i]),
               " and has to give ", show(script.graph, right.taken[i]));
  }
  if (result.taken_stays) {
    return str("first wrong element: ", show(script.graph, result.taken.back()), " is taken and still in `entries`");
  }
  if (!(result.waiting == right.waiting)) {
    return str("first wrong element: in the end `entries` has ", show(script.graph, result.waiting),
               " and has to have ", show(script.graph, right.waiting));
  }
  return result.heap_agrees ? "" : "`heap` has to have each node of `entries` once";
}

Subject<Script, ReadyResult> ready_subject(const char* function, std::vector<Script> scripts,
                                           std::vector<std::pair<const char*, ReadyMistake>> mistakes) {
  Subject<Script, ReadyResult> subject;
  subject.function = function;
  subject.inputs = std::move(scripts);
  subject.learners = learners_ready;
  subject.describe = describe_script;
  subject.same = [](const ReadyResult& a, const ReadyResult& b) {
    return a.taken == b.taken && a.waiting == b.waiting;
  };
  subject.fault = fault_of_ready;
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, [mistake = mistake](const Script& s) { return ready_result(s, mistake); }});
  }
  return subject;
}

const Graph kThree{"a, b, c", {{"a", {}}, {"b", {}}, {"c", {}, 3}}, {}};

Exercise add_exercise() {
  auto subject = ready_subject(
      "rush::ReadyNodes::add",
      {{kThree, {{0, 1}}},
       {kThree, {{2, 1, 0}, {2, 2, 2}}},
       {kThree, {{0, 1}, {1, 2}, {0, 4}, {1, 8}}},
       {kThree, {{2, 1, 1}, {1, 3}, {2, 5, 1}, {2, 7, 0}}}},
      {{"the last gradient wins: the gradients that arrive in a slot are added", ReadyMistake::LastWins},
       {"the edge's slot is ignored: a node with several outputs has a gradient for each", ReadyMistake::OneSlot}});
  subject.mistakes.push_back(
      {"a node is in the heap once for each gradient: it has to be there once, or it runs for each", nullptr,
       [](const Script& script, const ReadyResult& result) {
         const bool several = script.steps.size() > 1;
         return result.heap_agrees != several && result.waiting == ready_result(script, {}).waiting;
       }});
  return exercise(std::move(subject));
}

Exercise take_exercise() {
  auto subject = ready_subject(
      "rush::ReadyNodes::take",
      {{kThree, {{0, 1}, kTake}},
       {kThree, {{1, 1}, {0, 2}, {1, 3}, kTake, kTake}},
       {kThree, {{1, 1}, {2, 2, 1}, {0, 3}, kTake, {0, 4}, kTake, kTake}},
       {kThree, {{0, 1}, {2, 2, 0}, {1, 3}, {2, 4, 2}, kTake, {0, 5}, {2, 6, 2}, kTake, kTake}}},
      {{"the lowest sequence number is taken first: it has to be the highest, or a node runs before all its gradients "
        "have come",
        ReadyMistake::Lowest},
       {"nodes are taken in the order in which they were reached: so a node runs before all its gradients have come",
        ReadyMistake::InOrder},
       {"the node that was reached last is taken first: it has to be the one with the highest sequence number",
        ReadyMistake::LastFirst}});
  subject.mistakes.push_back({"a node that was taken stays in `entries`: then the pass never ends", nullptr,
                              [](const Script&, const ReadyResult& result) { return result.taken_stays; }});
  return exercise(std::move(subject));
}

// ---- nodes_leading_to ----

using Names = std::set<int>;  // by the numbers of functions

Names learners_leading(const Graph& graph) {
  Runs none;
  const auto nodes = nodes_of(graph, none);
  Names names;
  for (const Node* node : nodes_leading_to(edges_of(graph.roots, nodes), edges_of(graph.inputs, nodes))) {
    names.insert(static_cast<const Multiply*>(node)->number);
  }
  return names;
}

Names right_leading(const Graph& graph) {
  const std::vector<bool> leads = leading(graph);
  Names names;
  for (size_t i = 0; i < leads.size(); ++i) {
    if (leads[i]) names.insert(static_cast<int>(i));
  }
  return names;
}

Names inputs_of(const Graph& graph) {
  Names names;
  for (const Arrow& input : graph.inputs) names.insert(input.to);
  return names;
}

std::string fault_of_leading(const Graph& graph, const Names& got) {
  const Names right = right_leading(graph);
  for (size_t i = 0; i < graph.functions.size(); ++i) {
    const bool is_in = got.count(static_cast<int>(i)) != 0, has_to = right.count(static_cast<int>(i)) != 0;
    if (is_in == has_to) continue;
    return str("first wrong element: the node of ", graph.functions[i].name, is_in ? " is" : " is not",
               " in the set, and ", has_to ? "has to be" : "leads to no input");
  }
  return {};
}

Exercise leading_exercise() {
  Subject<Graph, Names> subject;
  subject.function = "rush::nodes_leading_to";
  subject.inputs = {kForA, kForAandD, kForSkipped, long_doubling()};
  subject.learners = learners_leading;
  subject.describe = [](const Graph& graph) { return graph.text; };
  subject.same = std::equal_to<>();
  subject.fault = fault_of_leading;
  subject.mistakes = {
      {"all nodes that the roots reach are in the set: only those are wanted that lead to an input",
       [](const Graph& graph) {
         Names names;
         for (size_t i = 0; i < graph.functions.size(); ++i) names.insert(static_cast<int>(i));
         return names;
       }},
      {"the inputs' own nodes are not in the set",
       [](const Graph& graph) {
         Names names = right_leading(graph);
         for (int input : inputs_of(graph)) names.erase(input);
         return names;
       }},
      {"only the inputs' own nodes are in the set, and not those that lead to them", inputs_of},
  };
  return exercise(std::move(subject));
}

// ---- run_backward ----

struct PassResult {
  std::string threw;
  Runs runs;
  Grads captured;
};

PassResult learners_pass(const Graph& graph) {
  PassResult result;
  const auto nodes = nodes_of(graph, result.runs);
  Tensors gradients;
  for (const Arrow& root : graph.roots) gradients.push_back(tensor_of({root.factor}));
  try {
    BackwardOptions options;
    options.accumulate = graph.inputs.empty();
    result.captured =
        grads_of(run_backward(edges_of(graph.roots, nodes), gradients, edges_of(graph.inputs, nodes), options));
  } catch (const std::exception& error) {
    result.threw = error.what();
  }
  return result;
}

PassResult right_pass(const Graph& graph) {
  PassResult result;
  const Arrivals arrivals(graph);
  const std::vector<bool> leads = leading(graph);
  const Names inputs = inputs_of(graph);
  for (int i = static_cast<int>(graph.functions.size()) - 1; i >= 0; --i) {
    const bool leads_on = std::ranges::any_of(graph.functions[i].edges,
                                              [&](const Arrow& edge) { return edge.to >= 0 && leads[edge.to]; });
    const bool ends = inputs.count(i) && !leads_on;  // its gradient is only asked for
    if (leads[i] && arrivals.paths[i] > 0 && !ends) result.runs.push_back({i, arrivals.grads[i]});
  }
  for (const Arrow& input : graph.inputs) result.captured.push_back(arrivals.grads[input.to][input.slot]);
  return result;
}

std::string fault_of_pass(const Graph& graph, const PassResult& result) {
  const PassResult right = right_pass(graph);
  if (!result.threw.empty() && result.runs.empty()) return str("it threw: ", result.threw);
  const Runs& runs = result.runs;
  for (size_t i = 0; i < std::max(runs.size(), right.runs.size()); ++i) {
    if (i < runs.size() && i < right.runs.size() && runs[i] == right.runs[i]) continue;
    const auto at = [&](const Runs& all) { return i < all.size() ? show(graph, all[i]) : "nothing"; };
    return str("first wrong element: run number ", i + 1, ", with its gradients, is ", at(runs), " and has to be ",
               at(right.runs), "\n         the right runs are ", show(graph, right.runs));
  }
  if (!result.threw.empty()) return str("it threw: ", result.threw);
  if (result.captured == right.captured) return {};
  return str("first wrong element: the gradients at the inputs are ", show(result.captured), " and have to be ",
             show(right.captured));
}

// How often each function ran, and the sum of all that it was given.
struct Given {
  std::vector<int> runs;
  std::vector<double> sums;

  Given(const Graph& graph, const Runs& all) : runs(graph.functions.size(), 0), sums(graph.functions.size(), 0) {
    for (const Run& run : all) {
      ++runs[run.function];
      for (const auto& grad : run.grads) sums[run.function] += grad.value_or(0);
    }
  }
};

// Gradients of several roots may be added before the walk begins.
bool runs_for_each_visit(const Graph& graph, const PassResult& result) {
  return graph.roots.size() > 1 || Given(graph, result.runs).runs == Arrivals(graph).paths;
}

bool runs_in_another_order(const Graph& graph, const PassResult& result) {
  Runs runs = result.runs;
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.function > b.function; });
  return runs == right_pass(graph).runs;
}

bool runs_too_early(const Graph& graph, const PassResult& result) {
  const Given given(graph, result.runs), right(graph, right_pass(graph).runs);
  return given.sums == right.sums;
}

bool starts_at_first_root(const Graph& graph, const PassResult& result) {
  Graph one = graph;
  one.roots.resize(1);
  return result.runs == right_pass(one).runs;
}

bool runs_what_is_not_wanted(const Graph& graph, const PassResult& result) {
  const std::vector<bool> leads = leading(graph);
  PassResult wanted = result;
  std::erase_if(wanted.runs, [&](const Run& run) { return !leads[run.function]; });
  return wanted.runs.size() < result.runs.size() && fault_of_pass(graph, wanted).empty();
}

Subject<Graph, PassResult> pass_subject(std::vector<Graph> graphs) {
  Subject<Graph, PassResult> subject;
  subject.function = "rush::run_backward";
  subject.inputs = std::move(graphs);
  subject.learners = learners_pass;
  subject.describe = [](const Graph& graph) { return graph.text; };
  subject.fault = fault_of_pass;
  return subject;
}

Exercise pass_exercise() {
  auto subject = pass_subject({kChain, kDoubled, kSkip, kBranches, kOutputs, kRoots, kMissing});
  subject.mistakes = {
      {"the graph is walked by visits: a node runs for each gradient that arrives, 2 to the power of the depth times "
       "in all; it has to run once, when all that it waits for has come",
       nullptr, runs_for_each_visit},
      {"the highest sequence number is not first: of the nodes that are ready, the one made last runs first", nullptr,
       runs_in_another_order},
      {"a node runs before all its gradients have come: what comes later makes it run again", nullptr, runs_too_early},
      {"the pass starts at the first root only", nullptr, starts_at_first_root},
  };
  return exercise(std::move(subject));
}

Exercise inputs_exercise() {
  auto subject = pass_subject({kForA, kForAandD, kForSkipped});
  subject.mistakes = {
      {"nodes run that lead to no input: only edges to the nodes of nodes_leading_to are wanted", nullptr,
       runs_what_is_not_wanted},
  };
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> engine_exercises() {
  return {accumulate_exercise(), add_exercise(),  take_exercise(),
          leading_exercise(),    pass_exercise(), inputs_exercise()};
}

}  // namespace rush::labs
