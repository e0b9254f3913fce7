#include "nn/parallel/pipeline_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error/error.h"

namespace rush::nn::parallel {

namespace {

using Kind = PipelineAction::Kind;

// Of P processes with V stages each, process p makes warm_up(p) forward passes, then one more and one backward pass in
// turn while there are more, then the other backward passes. In each round, `in_round` micro-batches go through the
// process's first stage, then through its second, ...; backward from its last stage on.
template <class WarmUp>
PipelineOrder make_order(int processes, int own, int micro_batches, int in_round, const WarmUp& warm_up) {
  PipelineOrder order{processes * own, micro_batches, {}};
  const int passes = own * micro_batches;  // of each kind on a process
  for (int process = 0; process < processes; ++process) {
    std::vector<PipelineAction>& actions = order.actions.emplace_back();
    const auto add = [&](Kind kind, int k) {
      const int place = k / in_round % own, number = kind == Kind::FORWARD ? place : own - 1 - place;
      actions.push_back({kind, number * processes + process, k / (in_round * own) * in_round + k % in_round});
    };
    const int ahead = std::min(warm_up(process), passes);
    for (int k = 0; k < passes + ahead; ++k) {
      if (k < passes) add(Kind::FORWARD, k);
      if (k >= ahead) add(Kind::BACKWARD, k - ahead);
    }
  }
  return order;
}

void check_counts(const char* who, int processes, int own, int micro_batches) {
  RUSH_CHECK_VALUE(processes >= 1 && own >= 1 && micro_batches >= 1, who, ": expected at least 1 of each, got ",
                   processes, " processes, ", own, " stages on each, ", micro_batches, " micro-batches");
}

// When the passes of an order end: infinite for those of which that is not known yet.
class Ends {
 public:
  explicit Ends(const PipelineOrder& order)
      : order_(order),
        ends_(2 * static_cast<size_t>(order.stages) * static_cast<size_t>(order.micro_batches),
              std::numeric_limits<double>::infinity()) {}

  double& of(const PipelineAction& pass) {
    const int row = (pass.kind == Kind::BACKWARD ? order_.stages : 0) + pass.stage;
    return ends_[static_cast<size_t>(row * order_.micro_batches + pass.micro_batch)];
  }
  // When what a pass needs is there.
  double ready(const PipelineAction& pass) {
    const auto [kind, stage, micro_batch] = pass;
    if (kind == Kind::FORWARD) return stage == 0 ? 0 : of({kind, stage - 1, micro_batch});
    const double above = stage + 1 == order_.stages ? 0 : of({kind, stage + 1, micro_batch});
    return std::max(of({Kind::FORWARD, stage, micro_batch}), above);
  }

 private:
  const PipelineOrder& order_;
  std::vector<double> ends_;
};

// On each stage's process, each micro-batch has one forward pass, and one backward pass unless there is none at all.
void check_complete(const PipelineOrder& order) {
  RUSH_CHECK_VALUE(order.processes() >= 1 && order.stages >= 1 && order.micro_batches >= 1,
                   "PipelineOrder: expected at least 1 of each, got ", order.processes(), " processes, ", order.stages,
                   " stages, ", order.micro_batches, " micro-batches");
  Ends seen(order);
  int64_t counts[2] = {0, 0};
  for (int process = 0; process < order.processes(); ++process) {
    for (const PipelineAction& action : order.actions[static_cast<size_t>(process)]) {
      const auto [kind, stage, micro_batch] = action;
      const bool is_pass = (kind == Kind::FORWARD || kind == Kind::BACKWARD) && stage >= 0 && stage < order.stages &&
                           micro_batch >= 0 && micro_batch < order.micro_batches;
      RUSH_CHECK_VALUE(is_pass && order.process_of(stage) == process, "PipelineOrder: ", action.str(), " of process ",
                       process, " is no pass of a stage of this process; there are ", order.stages, " stages and ",
                       order.micro_batches, " micro-batches");
      RUSH_CHECK_VALUE(std::isinf(seen.of(action)), "PipelineOrder: ", action.str(), " is there twice");
      seen.of(action) = 0;
      ++counts[kind == Kind::BACKWARD];
    }
  }
  const int64_t all = int64_t{order.stages} * order.micro_batches;
  RUSH_CHECK_VALUE(counts[0] == all && (counts[1] == all || counts[1] == 0), "PipelineOrder: there are ", counts[0],
                   " forward and ", counts[1], " backward passes of ", order.stages, " stages and ",
                   order.micro_batches, " micro-batches; expected ", all, " of each, or no backward pass");
}

}  // namespace

std::string PipelineAction::str() const {
  static constexpr const char* kNames[] = {"F", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  return rush::str(stage, kNames[static_cast<size_t>(kind)], micro_batch);
}

PipelineOrder gpipe_order(int processes, int micro_batches) {
  check_counts("gpipe_order", processes, 1, micro_batches);
  return make_order(processes, 1, micro_batches, micro_batches, [=](int) { return micro_batches; });
}

PipelineOrder one_f_one_b_order(int processes, int micro_batches) {
  check_counts("one_f_one_b_order", processes, 1, micro_batches);
  return make_order(processes, 1, micro_batches, micro_batches, [=](int process) { return processes - 1 - process; });
}

PipelineOrder interleaved_1f1b_order(int processes, int stages_per_process, int micro_batches) {
  check_counts("interleaved_1f1b_order", processes, stages_per_process, micro_batches);
  RUSH_CHECK_VALUE(micro_batches >= processes, "interleaved_1f1b_order: ", micro_batches,
                   " micro-batches are fewer than the ", processes, " processes");
  const int rounds = micro_batches / processes, in_round = micro_batches / rounds;
  RUSH_CHECK_VALUE(in_round * rounds == micro_batches, "interleaved_1f1b_order: ", micro_batches,
                   " micro-batches cannot go in ", rounds, " rounds of equally many; a multiple of the ", processes,
                   " processes can");
  return make_order(processes, stages_per_process, micro_batches, in_round,
                    [=](int process) { return (stages_per_process - 1) * in_round + 2 * (processes - 1 - process); });
}

PipelineOrder forward_only(const PipelineOrder& order) {
  PipelineOrder forward = order;
  for (auto& actions : forward.actions) {
    std::erase_if(actions, [](const PipelineAction& action) { return action.kind != Kind::FORWARD; });
  }
  return forward;
}

PipelineTimes simulate(const PipelineOrder& order, double forward, double backward) {
  check_complete(order);
  const size_t processes = order.actions.size();
  Ends ends(order);
  PipelineTimes times;
  times.ends.resize(processes);
  double busy = 0;
  std::string waiting;
  // Each process goes as far as it can, again and again, until none can go on.
  for (bool goes_on = true; std::exchange(goes_on, false);) {
    waiting.clear();
    for (size_t process = 0; process < processes; ++process) {
      const std::vector<PipelineAction>& actions = order.actions[process];
      std::vector<double>& own = times.ends[process];
      for (; own.size() < actions.size() && !std::isinf(ends.ready(actions[own.size()])); goes_on = true) {
        const PipelineAction& action = actions[own.size()];
        const double cost = action.kind == Kind::FORWARD ? forward : backward;
        own.push_back(std::max(ends.ready(action), own.empty() ? 0 : own.back()) + cost);
        ends.of(action) = own.back();
        times.total = std::max(times.total, own.back());
        busy += cost;
      }
      if (own.size() < actions.size())
        waiting += str(waiting.empty() ? "" : ", ", actions[own.size()].str(), " on process ", process);
    }
  }
  RUSH_CHECK_VALUE(waiting.empty(), "PipelineOrder: these wait forever for what they need: ", waiting);
  times.bubble = 1 - busy / (static_cast<double>(processes) * times.total);
  return times;
}

PipelineOrder with_messages(const PipelineOrder& order) {
  const PipelineTimes times = simulate(order);
  struct Pass {
    double end;
    size_t process, place;
    auto operator<=>(const Pass&) const = default;
  };
  std::vector<Pass> passes;
  for (size_t process = 0; process < order.actions.size(); ++process) {
    for (size_t i = 0; i < order.actions[process].size(); ++i) passes.push_back({times.ends[process][i], process, i});
  }
  std::sort(passes.begin(), passes.end());
  PipelineOrder whole{order.stages, order.micro_batches, {order.actions.size(), std::vector<PipelineAction>()}};
  std::vector<size_t> behind_messages(order.actions.size());  // in each list
  const auto insert = [&](size_t process, const PipelineAction& message) {
    std::vector<PipelineAction>& actions = whole.actions[process];
    actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(behind_messages[process]++), message);
  };
  for (const auto& [end, process, place] : passes) {
    const PipelineAction& pass = order.actions[process][place];
    whole.actions[process].push_back(pass);
    const bool is_forward = pass.kind == Kind::FORWARD;
    const int next = is_forward ? pass.stage + 1 : pass.stage - 1;  // the stage that needs what the pass makes
    if (next < 0 || next == order.stages || order.process_of(next) == order.process_of(pass.stage)) continue;
    behind_messages[process] = whole.actions[process].size();
    insert(process, {is_forward ? Kind::SEND_FORWARD : Kind::SEND_BACKWARD, pass.stage, pass.micro_batch});
    insert(static_cast<size_t>(order.process_of(next)),
           {is_forward ? Kind::RECV_FORWARD : Kind::RECV_BACKWARD, next, pass.micro_batch});
  }
  return whole;
}

}  // namespace rush::nn::parallel
