// Exercises of lab 15: scripts of calls of a graphed step on the emulated accelerator. What each call has to do and to
// return is computed here with plain numbers; a mistake is a change to that computation.
#include "optim/graphs/graphed_step.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/device/backend.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/reduce/reduce.h"
#include "optim/sgd.h"
#include "tests/labs/device/accelerator.h"
#include "tests/labs/exercise.h"

namespace rush::labs {
namespace {

// ---- scripts

// A call with `size` numbers that are all `x`, made on one of three streams: the default one and two others.
struct StepCall {
  int64_t size;
  double x, lr = 0.125;
  int stream = 0;
  ScalarType dtype = kFloat32;
};

struct Script {
  int warmup;
  std::vector<StepCall> calls;
};

std::string show(const Script& script) {
  std::string text = str("warmup = ", script.warmup, ", calls with ");
  for (size_t i = 0; i < script.calls.size(); ++i) {
    const StepCall& call = script.calls[i];
    text += str(i ? ", " : "", call.size, " times ", call.x);
    if (call.dtype != kFloat32) text += str(" as ", call.dtype);
    if (call.stream != 0) text += str(" on another stream, ", call.stream);
  }
  return text;
}

// What a call did and returned.
struct Seen {
  bool ran = false, on_side_stream = true, captured = false;
  ScalarType dtype = kFloat32;  // of what the step was given
  size_t waits = 0;             // of the host for the device
  double loss = 0, weight = 0;
  bool has_history = false, same_tensor = false, new_version = true;
};

std::string show(const Seen& seen) {
  std::string text = seen.ran ? "the step runs" : "the step does not run";
  if (seen.ran) text += seen.captured ? ", while a graph is captured" : ", as it is";
  if (seen.ran)
    text += str(seen.on_side_stream ? ", on capture_stream()" : ", on the caller's stream", ", with ", seen.dtype);
  text += str("; the host waits ", seen.waits, " times; the loss is ", seen.loss, ", the weight is then ", seen.weight);
  if (seen.has_history) text += "; the loss has a history";
  if (!seen.ran && !seen.same_tensor) text += "; the loss is another tensor than before";
  if (!seen.new_version) text += "; the loss has the version that it had before";
  return text;
}

// Which two streams race, if any.
enum class RaceOf { None, CallerThenSide, SideThenCaller, Callers, Freed };

struct Outcome {
  std::vector<Seen> calls;
  size_t graphs = 0;
  bool one_pool = true;  // has the losses of all graphs
  RaceOf race = RaceOf::None;
  std::string race_text, threw;
};

// ---- the learner's

RaceOf kind_of(const Race& race) {
  if (race.text.empty()) return RaceOf::None;
  if (race.first == race.second) return RaceOf::Freed;
  const size_t side = number_of(graphs::capture_stream());
  return race.first == side ? RaceOf::SideThenCaller : race.second == side ? RaceOf::CallerThenSide : RaceOf::Callers;
}

// One weight, which begins with 2. A step's loss is the sum of its products with the input.
struct Trained {
  Tensor weight = full({1}, 2, TensorOptions(kFloat32).device(emulated())).requires_grad_();
  optim::SGD optimizer{{weight}, optim::SGDOptions(1).capturable(true)};
};

struct Snapshot {
  Tensor loss, weight;
};

Seen make_call(graphs::detail::StepGraphs& graphs, Trained& trained, const StepCall& call, Tensor& last_loss,
               Snapshot& snapshot) {
  Seen seen;
  const auto step = [&](const std::vector<Tensor>& inputs) {
    seen.ran = true;
    seen.captured = graphs::is_capturing();
    seen.on_side_stream = current_stream(emulated()) == graphs::capture_stream();
    seen.dtype = inputs[0].scalar_type();
    trained.optimizer.zero_grad();
    const Tensor loss = (trained.weight * inputs[0]).sum();
    loss.backward();
    trained.optimizer.step();
    return loss;
  };
  trained.optimizer.param_groups()[0].options().set_lr(call.lr);
  const Tensor input = full({call.size}, call.x, TensorOptions(call.dtype)).pin_memory();
  const auto version = last_loss.defined() ? last_loss._version() : 0;
  const size_t waits = streams().waits();
  const Tensor loss = graphs.call(step, {input});
  seen.waits = streams().waits() - waits;
  seen.has_history = loss.requires_grad();
  seen.same_tensor = loss.is_same(last_loss);
  seen.new_version = !seen.same_tensor || loss._version() != version;
  last_loss = loss;
  snapshot = {loss.detach().clone(), trained.weight.detach().clone()};
  return seen;
}

// Streams of the caller's: the default one and two that graphs are not captured on.
std::vector<Stream> callers_streams() {
  std::vector<Stream> callers = {Stream{emulated(), nullptr}};
  const Stream side = graphs::capture_stream();
  while (callers.size() < 3) {
    const Stream next = backend_of(emulated().type).stream_from_pool(0);
    if (!(next == side)) callers.push_back(next);
  }
  return callers;
}

void play(const Script& script, Outcome& outcome) {
  static const std::vector<Stream> callers = callers_streams();
  Trained trained;
  graphs::detail::StepGraphs graphs({.warmup = script.warmup});
  streams().synchronize();
  std::vector<Snapshot> snapshots(script.calls.size());
  std::map<std::pair<int64_t, ScalarType>, Tensor> losses;
  for (size_t i = 0; i < script.calls.size(); ++i) {
    const StepCall& call = script.calls[i];
    const StreamGuard guard(callers[static_cast<size_t>(call.stream)]);
    outcome.calls.push_back(make_call(graphs, trained, call, losses[{call.size, call.dtype}], snapshots[i]));
  }
  outcome.graphs = graphs.captured();
  std::set<uint64_t> pools;
  for (const auto& [key, loss] : losses) pools.insert(device_memory().pool_of(loss.data_ptr()));
  pools.erase(0);
  outcome.one_pool = pools.size() <= 1;
  streams().synchronize();
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const double loss = snapshots[i].loss.item<double>();
    outcome.calls[i].loss = std::isnan(loss) ? std::nan("") : loss;  // without a sign
    outcome.calls[i].weight = snapshots[i].weight.item<double>();
  }
}

Outcome learners_outcome(const Script& script) {
  emulated();
  streams().set_seed(15);
  races().clear();
  Outcome outcome;
  outcome.threw = thrown_by([&] { play(script, outcome); });
  const Race race = races().take();
  outcome.race = kind_of(race);
  outcome.race_text = race.text;
  streams().synchronize();
  return outcome;
}

// ---- the right ones

enum class Mistake {
  None,
  AlwaysNew,        // what is made for each call is not found again
  IgnoresDtypes,    // one graph serves all dtypes
  CallersStream,    // the warm-up runs where the caller is
  SideDoesNotWait,  // for the caller's stream
  CallerDoesNotWait,
  StreamsOfCalls,  // a call does not wait for the last one's stream
  KeepsHistory,
  GraphKeepsHistory,  // of what the capture returned
  OneMoreWarmup,
  OneLessWarmup,
  NoReplay,    // after the capture
  CopiesOnce,  // inputs, until the capture
  HostWaits,   // for the copies of inputs
  KeepsVersion,
  Clones,  // the loss
  CapturesAgain,
  OwnPools,
};

// What has been done for inputs of one shape and dtype.
struct Shaped {
  int calls = 0;
  bool captured = false;
  double captured_x = 0;
};

std::string key_of(const StepCall& call, Mistake mistake, size_t number) {
  if (mistake == Mistake::AlwaysNew) return str(number);
  return str(call.size, mistake == Mistake::IgnoresDtypes ? kFloat32 : call.dtype);
}

RaceOf race_of(const Script& script, Mistake mistake) {
  if (mistake == Mistake::SideDoesNotWait) return RaceOf::CallerThenSide;
  if (mistake == Mistake::CallerDoesNotWait) return RaceOf::SideThenCaller;
  bool other_stream = false;
  for (const StepCall& call : script.calls) other_stream |= call.stream != script.calls[0].stream;
  if (mistake == Mistake::StreamsOfCalls && other_stream) return RaceOf::Callers;
  return RaceOf::None;
}

int warmup_of(const Script& script, Mistake mistake) {
  return script.warmup + (mistake == Mistake::OneMoreWarmup) - (mistake == Mistake::OneLessWarmup);
}

// A call's part in the training: the step with `x`.
void take_step(const StepCall& call, double x, double& weight, Seen& seen) {
  const double gradient = static_cast<double>(call.size) * x;
  seen.loss = weight * gradient;
  weight -= call.lr * gradient;
}

Outcome outcome_of(const Script& script, Mistake mistake) {
  Outcome outcome;
  std::map<std::string, Shaped> known;
  std::map<std::string, ScalarType> first_dtypes;
  double weight = 2;
  for (const StepCall& call : script.calls) {
    const std::string key = key_of(call, mistake, outcome.calls.size());
    Shaped& shaped = known[key];
    Seen seen;
    seen.dtype = first_dtypes.try_emplace(key, call.dtype).first->second;
    seen.ran = !shaped.captured || mistake == Mistake::CapturesAgain;
    seen.captured = seen.ran && shaped.calls >= warmup_of(script, mistake);
    seen.on_side_stream = seen.captured || mistake != Mistake::CallersStream;
    const bool of_graph = seen.captured || !seen.ran;
    seen.has_history = mistake == (of_graph ? Mistake::GraphKeepsHistory : Mistake::KeepsHistory);
    seen.waits = (seen.captured ? 1 : 0) + (mistake == Mistake::HostWaits ? 1 : 0);
    seen.same_tensor = !seen.ran && mistake != Mistake::Clones;
    seen.new_version = seen.ran || mistake != Mistake::KeepsVersion;
    if (!shaped.captured) shaped.captured_x = call.x;
    shaped.captured |= seen.captured;
    ++shaped.calls;
    if (seen.captured && mistake == Mistake::NoReplay) {
      seen.loss = std::nan("");
    } else {
      take_step(call, mistake == Mistake::CopiesOnce ? shaped.captured_x : call.x, weight, seen);
    }
    seen.weight = weight;
    outcome.calls.push_back(seen);
  }
  for (const auto& [key, shaped] : known) outcome.graphs += shaped.captured ? 1 : 0;
  outcome.one_pool = mistake != Mistake::OwnPools || outcome.graphs <= 1;
  outcome.race = race_of(script, mistake);
  return outcome;
}

bool same(const Outcome& a, const Outcome& b) {
  if (a.race != b.race || !a.threw.empty() || !b.threw.empty()) return false;
  if (a.race != RaceOf::None) return true;  // the numbers depend on chance
  if (a.graphs != b.graphs || a.one_pool != b.one_pool || a.calls.size() != b.calls.size()) return false;
  for (size_t i = 0; i < a.calls.size(); ++i) {
    if (show(a.calls[i]) != show(b.calls[i])) return false;
  }
  return true;
}

std::string fault_of(const Script& script, const Outcome& got) {
  if (!got.threw.empty()) return str("it threw: ", got.threw);
  const Outcome right = outcome_of(script, Mistake::None);
  for (size_t i = 0; i < right.calls.size(); ++i) {
    const std::string is = show(got.calls[i]), has_to_be = show(right.calls[i]);
    if (is != has_to_be && got.race == RaceOf::None) {
      return str("first wrong element: call ", i + 1, "\n         it is        ", is, "\n         it has to be ",
                 has_to_be);
    }
  }
  if (got.race != RaceOf::None) return str("a race: ", got.race_text);
  if (!got.one_pool)
    return str("the losses of ", got.graphs, " graphs are in several private pools, and have to be in one");
  if (got.graphs == right.graphs) return {};
  return str("first wrong element: captured() is ", got.graphs, " and has to be ", right.graphs);
}

// ---- the exercises

std::string name_of(const char* function) { return str("rush::graphs::detail::StepGraphs::", function); }

struct NamedMistake {
  const char* name;
  Mistake mistake;
  const char* function;
};

constexpr NamedMistake kMistakes[] = {
    {"what was made for inputs of this shape is not found again: the step is never captured", Mistake::AlwaysNew,
     "step_for"},
    {"dtypes are not compared: the graph's inputs take the caller's numbers in another dtype", Mistake::IgnoresDtypes,
     "step_for"},
    {"the warm-up runs on the caller's stream: it has to run on the stream that is captured later",
     Mistake::CallersStream, "run"},
    {"the warm-up's stream does not wait for the caller's, where the inputs are written", Mistake::SideDoesNotWait,
     "run"},
    {"the caller's stream does not wait for the warm-up's, where the loss is written", Mistake::CallerDoesNotWait,
     "run"},
    {"the loss keeps its history: it would keep all that the backward pass has saved", Mistake::KeepsHistory, "run"},
    {"the loss keeps its history: the graph would keep all that the backward pass has saved",
     Mistake::GraphKeepsHistory, "capture"},
    {"one call more than warmup runs as it is", Mistake::OneMoreWarmup, "call"},
    {"the call that captures takes no step: a capture runs nothing, and has to be replayed", Mistake::NoReplay, "call"},
    {"inputs are copied until the capture only: every replay reads the memory of the graph's inputs",
     Mistake::CopiesOnce, "call"},
    {"the copies of inputs make the host wait: they have to be non_blocking", Mistake::HostWaits, "call"},
    {"a call does not wait for the stream of the last one", Mistake::StreamsOfCalls, "call"},
    {"the loss keeps its version, though a replay has written it", Mistake::KeepsVersion, "call"},
    {"each call returns another tensor: the graph writes one, and nothing is to be copied", Mistake::Clones, "call"},
    {"each call captures again", Mistake::CapturesAgain, "call"},
    {"each graph has a pool of its own: they never run at the same time, so one serves all", Mistake::OwnPools,
     "capture"},
};

Exercise step_exercise(const char* function, std::vector<Script> scripts) {
  Subject<Script, Outcome> subject;
  subject.function = name_of(function);
  subject.inputs = std::move(scripts);
  subject.learners = learners_outcome;
  subject.describe = [](const Script& script) { return show(script); };
  subject.same = same;
  subject.fault = fault_of;
  for (const NamedMistake& named : kMistakes) {
    subject.mistakes.push_back({named.name,
                                [mistake = named.mistake](const Script& script) { return outcome_of(script, mistake); },
                                nullptr, name_of(named.function)});
  }
  // What comes of these is an exception or a use of memory that is another's.
  const auto throws = [&](const char* name, const char* where, const char* text) {
    subject.mistakes.push_back({name, nullptr,
                                [text](const Script& script, const Outcome& outcome) {
                                  return outcome.threw.find(text) != std::string::npos ||
                                         fault_of(script, outcome).empty();
                                },
                                name_of(where)});
  };
  throws("sizes are not compared: inputs of another shape go to a graph that does not fit", "step_for",
         "copy_: The size");
  subject.mistakes.push_back({"one call less than warmup runs as it is: what a step makes once is made in a capture",
                              nullptr,
                              [](const Script& script, const Outcome& outcome) {
                                return outcome.threw.find("state cannot be made") != std::string::npos ||
                                       same(outcome, outcome_of(script, Mistake::OneLessWarmup));
                              },
                              name_of("call")});
  throws("the capture waits for the host's numbers or runs outside of Capture", "capture", "cannot be captured");
  subject.mistakes.push_back({"the graph reads memory that was freed: its inputs have to live as long as it", nullptr,
                              [](const Script& script, const Outcome& outcome) {
                                return outcome.race == RaceOf::Freed || fault_of(script, outcome).empty();
                              },
                              name_of("step_for")});
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> graphed_step_exercises() {
  return {
      step_exercise("step_for",
                    {{9, {{4, 1}}}, {9, {{4, 1}, {2, 3}, {4, 0.5}}}, {9, {{4, 1}, {4, 1, 0.125, 0, kFloat64}}}}),
      step_exercise("run", {{9, {{4, 1}, {4, 2}, {4, 3}}}, {9, {{4, 1, 0.125, 1}, {4, 2, 0.125, 1}}}}),
      step_exercise("capture", {{1, {{4, 1}, {4, 1}, {4, 1}}},
                                {3, {{4, 1}, {4, 2}, {4, 1}, {4, 1}}},
                                {1, {{4, 1}, {2, 1}, {4, 2}, {2, 1}}}}),
      step_exercise("call", {{1, {{4, 1}, {4, 2}, {4, 3}, {4, -1, 0.25}}},
                             {1, {{4, 1}, {2, 1}, {4, 2}, {2, 3}, {4, 1, 0.5}, {2, 2}}},
                             {2, {{4, 1}, {4, 2, 0.125, 1}, {4, 3, 0.125, 2}, {4, 1}, {4, 2, 0.125, 1}}}}),
  };
}

}  // namespace rush::labs
