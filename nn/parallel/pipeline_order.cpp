#include "nn/parallel/pipeline_order.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error/error.h"

namespace rush::nn::parallel {

namespace {

using Kind = PipelineAction::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();

void check_counts(const char* who, int processes, int stages_per_process, int micro_batches) {
  RUSH_CHECK_VALUE(processes >= 1 && stages_per_process >= 1 && micro_batches >= 1, who, ": expected at least 1, got ",
                   processes, " processes, ", stages_per_process, " stages on each, ", micro_batches, " micro-batches");
}

PipelineOrder empty_order(int processes, int stages, int micro_batches) {
  return {stages, micro_batches, std::vector<std::vector<PipelineAction>>(static_cast<size_t>(processes))};
}

// When the forward and backward passes of all stages end, as far as that is known: kNever elsewhere.
class Ends {
 public:
  explicit Ends(const PipelineOrder& order)
      : order_(order),
        forward_(static_cast<size_t>(order.stages) * static_cast<size_t>(order.micro_batches), kNever),
        backward_(forward_) {}

  double& of(const PipelineAction& action) {
    const int place = action.stage * order_.micro_batches + action.micro_batch;
    return (action.kind == Kind::FORWARD ? forward_ : backward_)[static_cast<size_t>(place)];
  }
  // The passes without which an action cannot begin.
  std::vector<PipelineAction> needs(const PipelineAction& action) const {
    const auto [kind, stage, micro_batch] = action;
    std::vector<PipelineAction> passes;
    if (kind == Kind::FORWARD) {
      if (stage > 0) passes.push_back({kind, stage - 1, micro_batch});
    } else {
      passes.push_back({Kind::FORWARD, stage, micro_batch});
      if (stage + 1 < order_.stages) passes.push_back({kind, stage + 1, micro_batch});
    }
    return passes;
  }
  // What an action waits for; nothing once it can begin.
  std::optional<PipelineAction> missing(const PipelineAction& action) {
    for (const PipelineAction& pass : needs(action)) {
      if (of(pass) == kNever) return pass;
    }
    return std::nullopt;
  }
  double ready(const PipelineAction& action) {
    double when = 0;
    for (const PipelineAction& pass : needs(action)) when = std::max(when, of(pass));
    return when;
  }

 private:
  const PipelineOrder& order_;
  std::vector<double> forward_, backward_;
};

// Every pass of every stage is there once, on its process; backward passes are there for all or for none.
void check_complete(const PipelineOrder& order) {
  RUSH_CHECK_VALUE(order.processes() >= 1 && order.stages >= 1 && order.micro_batches >= 1,
                   "PipelineOrder: expected at least one process, stage and micro-batch, got ", order.processes(), ", ",
                   order.stages, " and ", order.micro_batches);
  Ends seen(order);
  bool has_backward = false;
  for (int process = 0; process < order.processes(); ++process) {
    for (const PipelineAction& action : order.actions[static_cast<size_t>(process)]) {
      RUSH_CHECK_VALUE(action.kind == Kind::FORWARD || action.kind == Kind::BACKWARD, "PipelineOrder: ", action.str(),
                       " of process ", process, " is neither a forward nor a backward pass");
      RUSH_CHECK_VALUE(action.stage >= 0 && action.stage < order.stages && action.micro_batch >= 0 &&
                           action.micro_batch < order.micro_batches,
                       "PipelineOrder: ", action.str(), " of process ", process, " is out of range: there are ",
                       order.stages, " stages and ", order.micro_batches, " micro-batches");
      RUSH_CHECK_VALUE(order.process_of(action.stage) == process, "PipelineOrder: ", action.str(),
                       " is in the list of ", "process ", process, ", and stage ", action.stage, " is on process ",
                       order.process_of(action.stage));
      RUSH_CHECK_VALUE(seen.of(action) == kNever, "PipelineOrder: ", action.str(), " is there twice");
      seen.of(action) = 0;
      has_backward |= action.kind == Kind::BACKWARD;
    }
  }
  for (int stage = 0; stage < order.stages; ++stage) {
    for (int micro_batch = 0; micro_batch < order.micro_batches; ++micro_batch) {
      for (const Kind kind : {Kind::FORWARD, Kind::BACKWARD}) {
        const PipelineAction action{kind, stage, micro_batch};
        RUSH_CHECK_VALUE(seen.of(action) != kNever || (kind == Kind::BACKWARD && !has_backward),
                         "PipelineOrder: ", action.str(), " is missing on process ", order.process_of(stage));
      }
    }
  }
}

[[noreturn]] void fail_stuck(const PipelineOrder& order, Ends& ends, const PipelineTimes& times) {
  std::string text;
  for (size_t process = 0; process < order.actions.size(); ++process) {
    const size_t done = times.ends[process].size();
    if (done == order.actions[process].size()) continue;
    const PipelineAction& action = order.actions[process][done];
    text += str(text.empty() ? "" : "; ", "process ", process, " has ", action.str(), ", which needs ",
                ends.missing(action)->str());
  }
  RUSH_THROW(ValueError, "PipelineOrder: the processes wait forever: ", text);
}

}  // namespace

std::string PipelineAction::str() const {
  static constexpr const char* kNames[] = {"F", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  return rush::str(stage, kNames[static_cast<size_t>(kind)], micro_batch);
}

// ---- the three schedules

PipelineOrder gpipe_order(int processes, int micro_batches) {
  check_counts("gpipe_order", processes, 1, micro_batches);
  PipelineOrder order = empty_order(processes, processes, micro_batches);
  for (int process = 0; process < processes; ++process) {
    for (const Kind kind : {Kind::FORWARD, Kind::BACKWARD}) {
      for (int i = 0; i < micro_batches; ++i) order.actions[static_cast<size_t>(process)].push_back({kind, process, i});
    }
  }
  return order;
}

namespace {

// `warm_up` forward passes, then one more and one backward pass in turn until the forward passes are done, then the
// other backward passes. `forward(k)` and `backward(k)` are the k-th of each.
template <class Forward, class Backward>
std::vector<PipelineAction> alternate(int passes, int warm_up, const Forward& forward, const Backward& backward) {
  std::vector<PipelineAction> actions;
  warm_up = std::min(warm_up, passes);
  for (int k = 0; k < passes + warm_up; ++k) {
    if (k < passes) actions.push_back(forward(k));
    if (k >= warm_up) actions.push_back(backward(k - warm_up));
  }
  return actions;
}

}  // namespace

PipelineOrder one_f_one_b_order(int processes, int micro_batches) {
  check_counts("one_f_one_b_order", processes, 1, micro_batches);
  PipelineOrder order = empty_order(processes, processes, micro_batches);
  for (int process = 0; process < processes; ++process) {
    const auto pass = [&](Kind kind) { return [=](int k) { return PipelineAction{kind, process, k}; }; };
    order.actions[static_cast<size_t>(process)] =
        alternate(micro_batches, processes - 1 - process, pass(Kind::FORWARD), pass(Kind::BACKWARD));
  }
  return order;
}

PipelineOrder interleaved_1f1b_order(int processes, int stages_per_process, int micro_batches) {
  check_counts("interleaved_1f1b_order", processes, stages_per_process, micro_batches);
  RUSH_CHECK_VALUE(micro_batches >= processes, "interleaved_1f1b_order: ", micro_batches,
                   " micro-batches are fewer than the ", processes, " processes");
  const int rounds = micro_batches / processes;
  RUSH_CHECK_VALUE(micro_batches % rounds == 0, "interleaved_1f1b_order: ", micro_batches,
                   " micro-batches cannot go in ", rounds, " rounds of equally many; a multiple of the ", processes,
                   " processes can");
  const int in_round = micro_batches / rounds, own = stages_per_process;
  PipelineOrder order = empty_order(processes, processes * own, micro_batches);
  for (int process = 0; process < processes; ++process) {
    // A round's micro-batches on the process's first stage, then on its second, ...; backward from the last stage on.
    const auto pass = [&](Kind kind) {
      return [=](int k) {
        const int place = k / in_round % own, number = kind == Kind::FORWARD ? place : own - 1 - place;
        return PipelineAction{kind, number * processes + process, k / (in_round * own) * in_round + k % in_round};
      };
    };
    order.actions[static_cast<size_t>(process)] =
        alternate(micro_batches * own, (own - 1) * in_round + 2 * (processes - 1 - process), pass(Kind::FORWARD),
                  pass(Kind::BACKWARD));
  }
  return order;
}

PipelineOrder forward_only(const PipelineOrder& order) {
  PipelineOrder forward = order;
  for (auto& actions : forward.actions) {
    std::erase_if(actions, [](const PipelineAction& action) { return action.kind != Kind::FORWARD; });
  }
  return forward;
}

// ---- what an order costs

PipelineTimes simulate(const PipelineOrder& order, double forward, double backward) {
  check_complete(order);
  const size_t processes = order.actions.size();
  Ends ends(order);
  PipelineTimes times;
  times.ends.resize(processes);
  double busy = 0;
  // Each process goes as far as it can, again and again, until none can go on.
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t process = 0; process < processes; ++process) {
      std::vector<double>& own = times.ends[process];
      while (own.size() < order.actions[process].size() && !ends.missing(order.actions[process][own.size()])) {
        const PipelineAction& action = order.actions[process][own.size()];
        const double cost = action.kind == Kind::FORWARD ? forward : backward;
        own.push_back(std::max(ends.ready(action), own.empty() ? 0 : own.back()) + cost);
        ends.of(action) = own.back();
        times.total = std::max(times.total, own.back());
        busy += cost;
        goes_on = true;
      }
    }
  }
  for (size_t process = 0; process < processes; ++process) {
    if (times.ends[process].size() < order.actions[process].size()) fail_stuck(order, ends, times);
  }
  times.bubble = 1 - busy / (static_cast<double>(processes) * times.total);
  return times;
}

// ---- messages

namespace {

// A send or a receive of a process, before its action number `place`.
struct Message {
  PipelineAction action;
  size_t place;
  bool is_send() const { return action.kind == Kind::SEND_FORWARD || action.kind == Kind::SEND_BACKWARD; }
};

// Those of one process are in the order of Note [Messages of a pipeline]. Moves receives behind earlier sends, and
// before later messages.
void put_in_order(std::vector<Message>& messages) {
  size_t earliest = 0, latest = std::numeric_limits<size_t>::max();
  for (Message& message : messages) {
    if (message.is_send()) earliest = message.place;
    message.place = std::max(message.place, earliest);
  }
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    latest = message->place = std::min(message->place, latest);
  }
}

}  // namespace

PipelineOrder with_messages(const PipelineOrder& order, bool early) {
  const PipelineTimes times = simulate(order);
  struct Pass {
    double end;
    size_t process, place;
  };
  std::vector<Pass> passes;
  for (size_t process = 0; process < order.actions.size(); ++process) {
    for (size_t i = 0; i < order.actions[process].size(); ++i) passes.push_back({times.ends[process][i], process, i});
  }
  std::sort(passes.begin(), passes.end(),
            [](const Pass& a, const Pass& b) { return std::pair(a.end, a.process) < std::pair(b.end, b.process); });

  std::vector<std::vector<Message>> messages(order.actions.size());
  for (const Pass& pass : passes) {
    const PipelineAction& action = order.actions[pass.process][pass.place];
    const bool is_forward = action.kind == Kind::FORWARD;
    const int next = action.stage + (is_forward ? 1 : -1);  // the stage that needs what the pass makes
    if (next < 0 || next == order.stages || order.process_of(next) == order.process_of(action.stage)) continue;
    const auto receiver = static_cast<size_t>(order.process_of(next));
    const auto& theirs = order.actions[receiver];
    const auto user = static_cast<size_t>(
        std::find(theirs.begin(), theirs.end(), PipelineAction{action.kind, next, action.micro_batch}) -
        theirs.begin());
    messages[pass.process].push_back(
        {{is_forward ? Kind::SEND_FORWARD : Kind::SEND_BACKWARD, action.stage, action.micro_batch}, pass.place + 1});
    messages[receiver].push_back({{is_forward ? Kind::RECV_FORWARD : Kind::RECV_BACKWARD, next, action.micro_batch},
                                  early && user > 0 ? user - 1 : user});
  }

  PipelineOrder whole = empty_order(order.processes(), order.stages, order.micro_batches);
  for (size_t process = 0; process < order.actions.size(); ++process) {
    put_in_order(messages[process]);
    auto message = messages[process].begin();
    const auto add_messages_before = [&](size_t place) {
      for (; message != messages[process].end() && message->place <= place; ++message) {
        whole.actions[process].push_back(message->action);
      }
    };
    for (size_t i = 0; i < order.actions[process].size(); ++i) {
      add_messages_before(i);
      whole.actions[process].push_back(order.actions[process][i]);
    }
    add_messages_before(order.actions[process].size());
  }
  return whole;
}

}  // namespace rush::nn::parallel
