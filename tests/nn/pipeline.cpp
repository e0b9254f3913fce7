// Schedules of pipelines as lists, and how a Sequential is cut: what needs no other process.
#include "nn/parallel/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>

#include "core/distributed/fake.h"
#include "core/ops/basic.h"
#include "nn/modules.h"

namespace {

using namespace rush;
using namespace rush::nn::parallel;
using Kind = PipelineAction::Kind;

std::string text(const std::vector<PipelineAction>& actions) {
  std::string line;
  for (const PipelineAction& action : actions) line += (line.empty() ? "" : " ") + action.str();
  return line;
}

// Every order of up to so many processes, stages on each and micro-batches.
void for_each_order(int most_processes, int most_stages, int most_micro_batches,
                    const std::function<void(const PipelineOrder&)>& check) {
  for (int processes = 1; processes <= most_processes; ++processes) {
    for (int micro_batches = 1; micro_batches <= most_micro_batches; ++micro_batches) {
      check(gpipe_order(processes, micro_batches));
      check(one_f_one_b_order(processes, micro_batches));
      for (int stages = 1; stages <= most_stages && micro_batches >= processes; ++stages) {
        if (micro_batches % (micro_batches / processes) == 0) {
          check(interleaved_1f1b_order(processes, stages, micro_batches));
        }
      }
    }
  }
}

TEST_CASE("the lists of the schedules are PyTorch's") {
  CHECK(text(gpipe_order(2, 3).actions[1]) == "1F0 1F1 1F2 1B0 1B1 1B2");
  CHECK(text(one_f_one_b_order(3, 4).actions[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  CHECK(text(one_f_one_b_order(3, 4).actions[2]) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
  const PipelineOrder interleaved = interleaved_1f1b_order(2, 2, 4);
  CHECK(interleaved.stages == 4);
  CHECK(text(interleaved.actions[0]) == "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  CHECK(text(interleaved.actions[1]) == "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

TEST_CASE("the simulated bubbles are those of the formulas") {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 24; ++m) {
      const double expected = (p - 1.0) / (m + p - 1);
      CHECK(simulate(gpipe_order(p, m)).bubble == doctest::Approx(expected));
      CHECK(simulate(one_f_one_b_order(p, m)).bubble == doctest::Approx(expected));
      CHECK(simulate(one_f_one_b_order(p, m), 3, 4).bubble == doctest::Approx(expected));
      for (int v = 1; v <= 4 && m % p == 0; ++v) {
        CHECK(simulate(interleaved_1f1b_order(p, v, m)).bubble == doctest::Approx((p - 1.0) / (v * m + p - 1)));
      }
    }
  }
  const PipelineTimes times = simulate(one_f_one_b_order(3, 4));  // as in Note [Pipeline schedules]
  CHECK(times.total == 18);
  CHECK(times.ends[1] == std::vector<double>{2, 3, 7, 8, 10, 11, 13, 16});
}

TEST_CASE("1F1B holds the activations of at most P - s micro-batches on stage s, GPipe those of all") {
  // From one action of a micro-batch to its backward pass.
  const auto most_held = [](const std::vector<PipelineAction>& actions, Kind from) {
    int64_t held = 0, most = 0;
    for (const PipelineAction& action : actions) {
      held += (action.kind == from) - (action.kind == Kind::BACKWARD);
      most = std::max(most, held);
    }
    return most;
  };
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 9; ++m) {
      const PipelineOrder order = with_messages(one_f_one_b_order(p, m));
      for (int s = 0; s < p; ++s) {
        CHECK(most_held(order.actions[static_cast<size_t>(s)], Kind::FORWARD) == std::min(m, p - s));
        CHECK(most_held(gpipe_order(p, m).actions[static_cast<size_t>(s)], Kind::FORWARD) == m);
        // With the memory of receives, which takes one more.
        if (s > 0)
          CHECK(most_held(order.actions[static_cast<size_t>(s)], Kind::RECV_FORWARD) == std::min(m, p - s + 1));
      }
    }
  }
}

// Processes that exchange messages one after the other, each of which waits for its other end, as on NCCL's stream.
class Processes {
 public:
  // In a first step, a process waits for each activation where its receive stands: Note [Executing a pipeline].
  Processes(const PipelineOrder& order, bool is_first)
      : order_(order), is_first_(is_first), whole_(with_messages(order)), states_(order.actions.size()) {}

  // Whether all come to the ends of their lists, and no message is left over.
  bool come_to_the_end() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t p = 0; p < states_.size(); ++p) {
        while (advance(p) || exchange(p)) goes_on = true;
      }
    }
    for (size_t p = 0; p < states_.size(); ++p) {
      if (states_[p].next < whole_.actions[p].size() || !states_[p].under_way.empty()) return false;
    }
    return true;
  }

 private:
  struct State {
    size_t next = 0;                       // the action that it has come to
    std::deque<PipelineAction> under_way;  // messages that have begun
    std::string awaited;                   // the receive without which it does not go on
  };

  bool advance(size_t p) {
    State& state = states_[p];
    if (state.next == whole_.actions[p].size()) return false;
    if (!state.awaited.empty() && !done_.contains(state.awaited)) return false;
    const PipelineAction action = whole_.actions[p][state.next];
    const bool is_pass = action.kind == Kind::FORWARD || action.kind == Kind::BACKWARD;
    if (!is_pass) {
      state.under_way.push_back(action);
      if (is_first_ && action.kind == Kind::RECV_FORWARD) state.awaited = action.str();
    } else if (is_ready(action)) {
      done_.insert(action.str());
    } else {
      return false;
    }
    ++state.next;
    return true;
  }
  static bool is_receive(const PipelineAction& action) {
    return action.kind == Kind::RECV_FORWARD || action.kind == Kind::RECV_BACKWARD;
  }
  bool is_ready(const PipelineAction& action) const {
    const auto has = [&](Kind made, Kind received, int from) {
      const bool is_local = order_.process_of(from) == order_.process_of(action.stage);
      return done_.contains(
          PipelineAction{is_local ? made : received, is_local ? from : action.stage, action.micro_batch}.str());
    };
    if (action.kind == Kind::FORWARD) {
      return action.stage == 0 || has(Kind::FORWARD, Kind::RECV_FORWARD, action.stage - 1);
    }
    return action.stage + 1 == order_.stages || has(Kind::BACKWARD, Kind::RECV_BACKWARD, action.stage + 1);
  }
  // The first message of a process that receives, where it is the first of the sender too.
  bool exchange(size_t p) {
    auto& own = states_[p].under_way;
    if (own.empty() || !is_receive(own.front())) return false;
    const PipelineAction receive = own.front();
    const bool is_forward = receive.kind == Kind::RECV_FORWARD;
    const PipelineAction send{is_forward ? Kind::SEND_FORWARD : Kind::SEND_BACKWARD,
                              receive.stage + (is_forward ? -1 : 1), receive.micro_batch};
    auto& theirs = states_[static_cast<size_t>(order_.process_of(send.stage))].under_way;
    if (theirs.empty() || theirs.front() != send) return false;
    theirs.pop_front();
    own.pop_front();
    done_.insert(receive.str());
    return true;
  }

  const PipelineOrder& order_;
  const bool is_first_;
  const PipelineOrder whole_;
  std::vector<State> states_;
  std::set<std::string> done_;  // passes and receives
};

TEST_CASE("no process waits forever, not even where messages go one by one") {
  for_each_order(8, 3, 12, [](const PipelineOrder& order) {
    for (const bool is_first : {false, true}) {
      CHECK(Processes(order, is_first).come_to_the_end());
      CHECK(Processes(forward_only(order), is_first).come_to_the_end());
    }
  });
}

TEST_CASE("a receive stands behind the last send of the process that comes before it") {
  const PipelineOrder whole = with_messages(one_f_one_b_order(2, 3));
  CHECK(text(whole.actions[0]) == "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 0RECV_B1 0RECV_B2 0B1 0B2");
  CHECK(text(whole.actions[1]) == "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1RECV_F2 1F1 1B1 1SEND_B1 1F2 1B2 1SEND_B2");
  const PipelineOrder alone = with_messages(interleaved_1f1b_order(1, 3, 2));
  CHECK(text(alone.actions[0]) == "0F0 1F0 2F0 2B0 0F1 1B0 1F1 0B0 2F1 2B1 1B1 0B1");  // nothing to send
}

TEST_CASE("an order that cannot work is refused") {
  const auto refused = [](const PipelineOrder& order, const char* why) {
    CHECK_THROWS_WITH_AS(simulate(order), doctest::Contains(why), ValueError);
    CHECK_THROWS_WITH_AS(with_messages(order), doctest::Contains(why), ValueError);
  };
  const PipelineOrder good = one_f_one_b_order(2, 2);
  PipelineOrder bad = good;
  std::swap(bad.actions[1][0], bad.actions[1][1]);
  refused(bad, "these wait forever for what they need: 0B0 on process 0, 1B0 on process 1");
  bad = gpipe_order(2, 2);
  std::swap(bad.actions[0][2], bad.actions[0][3]);
  std::swap(bad.actions[1][0], bad.actions[1][3]);
  refused(bad, "1B1 on process 1");
  bad = good;
  bad.actions[0].pop_back();
  refused(bad, "there are 4 forward and 3 backward passes of 2 stages and 2 micro-batches; expected 4 of each");
  bad = good;
  bad.actions[1].push_back(bad.actions[1][0]);
  refused(bad, "1F0 is there twice");
  bad = good;
  bad.actions[0].push_back({Kind::FORWARD, 1, 0});
  refused(bad, "1F0 of process 0 is no pass of a stage of this process");
  bad = good;
  bad.actions[1][3].micro_batch = 2;
  refused(bad, "1B2 of process 1 is no pass");
  bad = good;
  bad.actions[1][3].kind = Kind::SEND_BACKWARD;
  refused(bad, "1SEND_B1 of process 1 is no pass");
  refused({}, "expected at least 1 of each, got 0 processes");

  CHECK_THROWS_WITH_AS(gpipe_order(0, 2), doctest::Contains("at least 1 of each, got 0 processes"), ValueError);
  CHECK_THROWS_WITH_AS(one_f_one_b_order(2, 0), doctest::Contains("0 micro-batches"), ValueError);
  CHECK_THROWS_WITH_AS(interleaved_1f1b_order(4, 2, 3), doctest::Contains("3 micro-batches are fewer than the 4"),
                       ValueError);
  CHECK_THROWS_WITH_AS(interleaved_1f1b_order(2, 2, 5), doctest::Contains("cannot go in 2 rounds"), ValueError);
}

std::vector<std::vector<std::string>> names(const std::vector<PipelineStage>& stages) {
  std::vector<std::vector<std::string>> all;
  for (const PipelineStage& stage : stages) all.push_back(stage.module()->named_parameters().keys());
  return all;
}

TEST_CASE("a Sequential is cut into stages that share its modules and their names") {
  using Names = std::vector<std::vector<std::string>>;
  const nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 8), nn::ReLU(), nn::Linear(8, 8),
                           nn::Linear(8, 2));  // 40, 72, 72 and 18 parameters
  const auto first = distributed::make_fake_group(0, 2), second = distributed::make_fake_group(1, 2);
  CHECK(names(split_sequential(net, {0, 2}, first)) == Names{{"0.weight", "0.bias"}});
  CHECK(names(split_sequential(net, 2, first)) == Names{{"0.weight", "0.bias", "2.weight", "2.bias"}});
  CHECK(names(split_sequential(net, 2, second)) == Names{{"4.weight", "4.bias", "5.weight", "5.bias"}});
  CHECK(names(split_sequential(net, 4, second)) == Names{{"2.weight", "2.bias"}, {"5.weight", "5.bias"}});
  CHECK(split_sequential(net, 4, second)[0].module()->children().size() == 2);  // a ReLU begins no stage
  CHECK(names(split_sequential(net, 6, second)) == Names{{}, {}, {"5.weight", "5.bias"}});

  const std::vector<PipelineStage> own = split_sequential(net, 4, second);
  CHECK(own[0].index() == 1);
  CHECK(own[1].index() == 3);
  CHECK(own[1].count() == 4);
  CHECK(own[1].is_last());
  CHECK(own[1].module()->parameters()[0].is_same(net->ptr(5)->parameters()[0]));
  Tensor x = ones({3, 4});
  const auto all = split_sequential(net, 3, distributed::make_fake_group(0, 1));
  for (const PipelineStage& stage : all) x = stage(x);
  CHECK(equal(x, nn::Sequential(net)(ones({3, 4}))));

  CHECK_THROWS_WITH_AS(split_sequential(net, 3, first), doctest::Contains("3 stages are not equally many"), ValueError);
  CHECK_THROWS_WITH_AS(split_sequential(net, 8, first), doctest::Contains("6 modules cannot be 8 stages"), ValueError);
  CHECK_THROWS_WITH_AS(split_sequential(net, {0, 6}, first),
                       doctest::Contains("stage 1 would be the modules from 6 to 6"), ValueError);
  CHECK_THROWS_AS(split_sequential(net, {1, 2}, first), ValueError);
  CHECK_THROWS_AS(split_sequential(net, {0, 3, 2, 4}, first), ValueError);
}

TEST_CASE("stages that do not make a pipeline are refused") {
  const auto group = distributed::make_fake_group(0, 2);
  const auto same = [](const Tensor& x) { return x; };
  CHECK_THROWS_WITH_AS(PipelineStage(same, 2, 2, group), doctest::Contains("no stage 2 of 2"), ValueError);
  CHECK_THROWS_WITH_AS(PipelineStage(PipelineStage::Function(), 0, 2, group), doctest::Contains("function is empty"),
                       ValueError);
  CHECK_THROWS_AS(PipelineStage(same, 0, 2), DistributedError);  // there is no world
  const PipelineStage first(same, 0, 4, group), third(same, 2, 4, group);
  CHECK_THROWS_WITH_AS(Schedule1F1B(first, 4), doctest::Contains("expected stage 0 of 2"), ValueError);
  CHECK_THROWS_WITH_AS(ScheduleInterleaved1F1B({third, first}, 4), doctest::Contains("got stage 2 of 4"), ValueError);
  CHECK_THROWS_WITH_AS(PipelineSchedule({first, third}, one_f_one_b_order(2, 4)),
                       doctest::Contains("the order has 2 stages; this process has 2, so 2 processes have 4"),
                       ValueError);
  CHECK_THROWS_WITH_AS(PipelineSchedule({first, third}, one_f_one_b_order(4, 4)),
                       doctest::Contains("is for 4 processes"), ValueError);
  CHECK_THROWS_WITH_AS(PipelineSchedule({}, one_f_one_b_order(2, 4)), doctest::Contains("expected a stage, got none"),
                       ValueError);
}

TEST_CASE("one process with all stages computes the mean of the micro-batches' losses, and its gradients") {
  manual_seed(3);
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2));
  net->to(kFloat64);
  const Tensor x = randn({6, 4}, kFloat64), y = randn({6, 2}, kFloat64);
  const auto loss = [](const Tensor& output, const Tensor& target) { return (output - target).square().mean(); };
  loss(net(x), y).backward();
  std::vector<Tensor> expected;
  for (const Tensor& parameter : net->parameters()) expected.push_back(parameter.grad().clone());
  net->zero_grad();

  ScheduleInterleaved1F1B schedule(split_sequential(net, 3, distributed::make_fake_group(0, 1)), 3, loss);
  CHECK(schedule.step(x, y).item<double>() == doctest::Approx(loss(net(x), y).item<double>()));
  schedule.step(x, y);  // gradients add up over steps
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(allclose(schedule.parameters()[i].grad(), expected[i] * 2, 1e-12, 1e-12));
  }
  CHECK(allclose(schedule.eval(x), net(x), 1e-12, 1e-12));
  CHECK_FALSE(schedule.eval(x).requires_grad());
}

}  // namespace
