// Exercises of lab 11: scripts of work, events and waits on the emulated accelerator. Which work comes after which is
// found here as a path in a graph; a mistake is a change to its edges.
#include <map>
#include <memory>

#include "core/device/backend.h"
#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/device/hand_over.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "tests/labs/device/accelerator.h"
#include "tests/labs/exercise.h"
#include "tests/labs/lines_exercise.h"

namespace rush::labs {
namespace {

Backend& backend() { return backend_of(emulated().type); }

// Stream 0 is the default one.
Stream stream(int number) {
  static const std::vector<Stream> known = [] {
    std::vector<Stream> all(Streams::kCount, Stream{emulated(), nullptr});
    for (size_t i = 1; i < all.size(); ++i) {
      const Stream next = backend().stream_from_pool(0);
      all[number_of(next)] = next;
    }
    return all;
  }();
  return known[static_cast<size_t>(number)];
}

// Leaves the accelerator without work, races and unusual streams.
void begin_anew() {
  backend().set_current_stream(stream(0));
  streams().synchronize();
  streams().set_seed(11);
  races().clear();
}

// ---- guards

// A stream for each of guards that are nested; -1 is the CPU's, which is no queue.
using Nested = std::vector<int>;

enum class GuardMistake { None, NotEntered, NotLeft, LeavesToDefault };

void enter_all(const Nested& nested, size_t depth, Lines& lines) {
  if (depth == nested.size()) return;
  {
    const StreamGuard guard(nested[depth] < 0 ? Stream() : stream(nested[depth]));
    lines.push_back(str("stream ", streams().current()));
    enter_all(nested, depth + 1, lines);
  }
  lines.push_back(str("then stream ", streams().current()));
}

Lines learners_guards(const Nested& nested) {
  begin_anew();
  backend().set_current_stream(stream(1));
  Lines lines;
  enter_all(nested, 0, lines);
  begin_anew();
  return lines;
}

void model_guards(const Nested& nested, size_t depth, GuardMistake mistake, int& current, Lines& lines) {
  if (depth == nested.size()) return;
  const int before = current;
  const bool changes = nested[depth] >= 0 && nested[depth] != before;
  if (changes && mistake != GuardMistake::NotEntered) current = nested[depth];
  lines.push_back(str("stream ", current));
  model_guards(nested, depth + 1, mistake, current, lines);
  if (changes && mistake != GuardMistake::NotLeft) current = mistake == GuardMistake::LeavesToDefault ? 0 : before;
  lines.push_back(str("then stream ", current));
}

Exercise guard_exercise() {
  return lines_exercise<Nested, GuardMistake>(
      "rush::StreamGuard::enter", {{2}, {1}, {-1, 2}, {2, 3, 2}, {0, 2}},
      [](const Nested& nested) {
        std::string text = "guards, each within the one before, where stream 1 is current:";
        for (int each : nested) text += each < 0 ? " of the CPU's stream" : str(" of stream ", each);
        return text;
      },
      learners_guards,
      [](const Nested& nested, GuardMistake mistake) {
        Lines lines;
        int current = 1;
        model_guards(nested, 0, mistake, current, lines);
        return lines;
      },
      {{"the stream is not made the current one", GuardMistake::NotEntered},
       {"the end of the scope does not bring the stream back", GuardMistake::NotLeft},
       {"the end of the scope makes the default stream current: it has to be the one before",
        GuardMistake::LeavesToDefault}});
}

// ---- scripts

enum class Do {
  Work,       // the stream is given a kernel that writes one and the same tensor
  Record,     // an event on the stream
  Await,      // the stream waits for an event, as the backend does it
  Block,      // the same by the event's function
  HostWaits,  // for an event
  Query,      // an event
  Wait,       // wait_stream(stream, other stream)
};

struct Action {
  Do what;
  int stream = 0, other = 0;  // `other`: an event's number, or a stream's; the stream -1 is the CPU's
};
using Script = std::vector<Action>;

std::string show(const Action& action) {
  const std::string on = action.stream < 0 ? "the CPU's stream" : str("stream ", action.stream);
  switch (action.what) {
    case Do::Work: return str("work on ", on);
    case Do::Record: return str("event ", action.other, " recorded on ", on);
    case Do::Await: return str("the backend lets ", on, " wait for event ", action.other);
    case Do::Block: return str("event ", action.other, " blocks ", on);
    case Do::HostWaits: return str("event ", action.other, ".synchronize()");
    case Do::Query: return str("event ", action.other, ".query()");
    case Do::Wait: return str("wait_stream(", on, ", stream ", action.other, ")");
  }
  return {};
}

std::string show(const Script& script) {
  std::string text;
  for (const Action& action : script) text += str(text.empty() ? "" : "; ", show(action));
  return text;
}

constexpr int kCurrent = 0;  // the stream that is current between actions

class Player {
 public:
  explicit Player(Tensor written) : written_(std::move(written)) {}

  std::string play(const Action& action) {
    Event& event = events_.try_emplace(action.other).first->second;
    const Stream on = action.stream < 0 ? Stream() : stream(action.stream);
    const size_t waits = streams().waits();
    switch (action.what) {
      case Do::Work: return work(action.stream);
      case Do::Record: event.record(on); break;
      case Do::Await:
        if (event.handle()) backend().wait(on, event.handle());
        break;
      case Do::Block: event.block(on); break;
      case Do::HostWaits: event.synchronize(); break;
      case Do::Query: return event.query() ? "reached" : "not reached";
      case Do::Wait: wait_stream(on, stream(action.other)); break;
    }
    return streams().waits() == waits ? "done" : "done, the host waited";
  }

 private:
  std::string work(int number) {
    backend().set_current_stream(stream(number));
    written_.fill_(number);
    backend().set_current_stream(stream(kCurrent));
    const Race race = races().take();
    return race.text.empty() ? "ordered" : str("a race with stream ", race.first);
  }

  Tensor written_;
  std::map<int, Event> events_;
};

Lines learners_lines(const Script& script) {
  begin_anew();
  Player player(zeros({64}, TensorOptions(kFloat32).device(emulated())));
  streams().synchronize();
  Lines lines;
  for (const Action& action : script) lines.push_back(player.play(action));
  begin_anew();
  return lines;
}

enum class OrderMistake {
  None,
  NeverRecorded,
  RecordsOnce,     // an event that was recorded is not recorded again
  RecordsCurrent,  // the current stream instead of the one that is given
  BlocksNothing,
  BlocksCurrent,
  HostDoesNotWait,
  HostAlwaysWaits,  // also where a stream has to
  AlwaysReached,
  Reversed,       // the first stream waits for the other one
  CpuIsForgotten  // wait_stream does nothing where the host has to wait
};

// The actions are nodes. An edge leads from each to what comes after it: the next of the same stream, and what has
// waited.
class Order {
 public:
  explicit Order(OrderMistake mistake) : mistake_(mistake) {}

  std::string play(const Action& action) {
    switch (action.what) {
      case Do::Work: return work(action.stream);
      case Do::Record: return record(action.stream, action.other), "done";
      case Do::Await: return await(action.stream, recorded(action.other)), "done";
      case Do::Block: return block(action.stream, recorded(action.other)) ? "done, the host waited" : "done";
      case Do::HostWaits: return host_waits(recorded(action.other)) ? "done, the host waited" : "done";
      case Do::Query: return query(action.other);
      case Do::Wait: return wait(action.stream, action.other) ? "done, the host waited" : "done";
    }
    return {};
  }

 private:
  using Node = int;
  static constexpr Node kNone = -1;

  Node add(int stream) {
    const Node node = static_cast<Node>(before_.size());
    before_.emplace_back();
    for (Node previous : {last_of(stream), host_}) {
      if (previous != kNone) before_.back().push_back(previous);
    }
    for (Node awaited : awaited_[stream]) before_.back().push_back(awaited);
    awaited_[stream].clear();
    last_[stream] = node;
    return node;
  }
  Node last_of(int stream) const {
    const auto found = last_.find(stream);
    return found == last_.end() ? kNone : found->second;
  }
  bool comes_after(Node later, Node earlier) const {
    if (later == earlier) return true;
    for (Node before : before_[static_cast<size_t>(later)]) {
      if (comes_after(before, earlier)) return true;
    }
    return false;
  }

  std::string work(int stream) {
    const Node node = add(stream);
    ++queued_;
    const auto [before, before_stream] = last_work_;
    last_work_ = {node, stream};
    return before == kNone || comes_after(node, before) ? "ordered" : str("a race with stream ", before_stream);
  }
  void record(int stream, int event) {
    if (stream < 0 || mistake_ == OrderMistake::NeverRecorded) return;
    if (mistake_ == OrderMistake::RecordsOnce && events_.count(event)) return;
    const int marked = mistake_ == OrderMistake::RecordsCurrent ? kCurrent : stream;
    events_[event] = add(marked);
    ++queued_;
    ahead_[event] = queued_;
  }
  Node recorded(int event) const {
    const auto found = events_.find(event);
    return found == events_.end() ? kNone : found->second;
  }
  bool block(int stream, Node point) {
    if (point == kNone || stream < 0) return false;
    if (mistake_ == OrderMistake::HostAlwaysWaits) return host_waits(point);
    if (mistake_ == OrderMistake::BlocksNothing) return false;
    await(mistake_ == OrderMistake::BlocksCurrent ? kCurrent : stream, point);
    return false;
  }
  void await(int stream, Node point) {
    if (point == kNone) return;
    awaited_[stream].push_back(point);
    ++queued_;
  }
  bool host_waits(Node point) {
    if (point == kNone || mistake_ == OrderMistake::HostDoesNotWait) return false;
    before_.push_back({point});
    if (host_ != kNone) before_.back().push_back(host_);
    host_ = static_cast<Node>(before_.size()) - 1;
    run_ = queued_;
    return true;
  }
  // Each query runs one piece of what is queued.
  std::string query(int event) {
    if (recorded(event) == kNone || mistake_ == OrderMistake::AlwaysReached) return "reached";
    run_ = std::min(run_ + 1, queued_);
    return run_ >= ahead_[event] ? "reached" : "not reached";
  }
  bool wait(int waiting, int first) {
    if (waiting == first) return false;
    if (mistake_ == OrderMistake::CpuIsForgotten && waiting < 0) return false;
    if (mistake_ == OrderMistake::Reversed && waiting >= 0) std::swap(waiting, first);
    record(first, kOwn);
    return waiting < 0 ? host_waits(recorded(kOwn)) : block(waiting, recorded(kOwn));
  }

  static constexpr int kOwn = 1000;  // wait_stream's event, which is a new one each time
  const OrderMistake mistake_;
  std::vector<std::vector<Node>> before_;
  std::map<int, Node> last_, events_;
  std::map<int, std::vector<Node>> awaited_;
  std::map<int, int> ahead_;
  int queued_ = 0, run_ = 0;
  std::pair<Node, int> last_work_{kNone, 0};
  Node host_ = kNone;
};

Lines model_lines(const Script& script, OrderMistake mistake) {
  Order order(mistake);
  Lines lines;
  for (const Action& action : script) lines.push_back(order.play(action));
  return lines;
}

using NamedMistakes = std::vector<std::pair<const char*, OrderMistake>>;

Exercise order_exercise(const char* function, std::vector<Script> scripts, const NamedMistakes& mistakes) {
  return lines_exercise<Script, OrderMistake>(
      function, std::move(scripts), [](const Script& script) { return show(script); }, learners_lines, model_lines,
      mistakes);
}

Action work(int stream) { return {Do::Work, stream}; }
Action record(int event, int stream) { return {Do::Record, stream, event}; }
Action await(int event, int stream) { return {Do::Await, stream, event}; }
Action block(int event, int stream) { return {Do::Block, stream, event}; }
Action host_waits(int event) { return {Do::HostWaits, 0, event}; }
Action query(int event) { return {Do::Query, 0, event}; }
Action wait(int waiting, int first) { return {Do::Wait, waiting, first}; }

// ---- hand_over

// A tensor that `producer` makes and `consumer` reads, and that is freed then; -1 is the CPU's stream.
struct Handover {
  int producer, consumer;
};

enum class HandoverMistake { None, NoWait, NoRecord };

Lines learners_handover(const Handover& call) {
  begin_anew();
  Lines lines;
  const auto run = [](int number, const auto& body) {
    const StreamGuard guard(number < 0 ? Stream() : stream(number));
    return body();
  };
  const TensorOptions place = TensorOptions(kFloat32).device(call.producer < 0 ? Device(kCPU) : emulated());
  Tensor made = run(call.producer, [&] { return full({64}, 2, place); });
  hand_over(made, call.producer < 0 ? Stream() : stream(call.producer),
            call.consumer < 0 ? Stream() : stream(call.consumer));
  const Tensor used = run(call.consumer, [&] { return made + 1; });
  lines.push_back(races().take().text.empty() ? "used: ordered" : "used: a race");
  const void* memory = made.data_ptr();
  made.reset();
  const Tensor next = run(call.producer, [&] { return full({64}, 3, place); });
  lines.push_back(races().take().text.empty() ? "freed: ordered" : "freed: a race");
  if (call.producer >= 0) lines.push_back(next.data_ptr() == memory ? "used again at once" : "not used again yet");
  begin_anew();
  return lines;
}

Lines model_handover(const Handover& call, HandoverMistake mistake) {
  const bool crosses = call.producer >= 0 && call.consumer >= 0 && call.producer != call.consumer;
  const bool kept = crosses && mistake != HandoverMistake::NoRecord;
  Lines lines = {crosses && mistake == HandoverMistake::NoWait ? "used: a race" : "used: ordered",
                 crosses && !kept ? "freed: a race" : "freed: ordered"};
  if (call.producer >= 0) lines.push_back(kept ? "not used again yet" : "used again at once");
  return lines;
}

Exercise handover_exercise() {
  return lines_exercise<Handover, HandoverMistake>(
      "rush::hand_over", {{1, 2}, {0, 3}, {2, 2}, {-1, -1}},
      [](const Handover& call) {
        const auto name = [](int number) {
          return number < 0 ? std::string("the CPU's stream") : str("stream ", number);
        };
        return str("a tensor of ", name(call.producer), " is handed over to ", name(call.consumer),
                   ", is used there, and is freed");
      },
      learners_handover, model_handover,
      {{"the consumer does not wait for the producer", HandoverMistake::NoWait},
       {"the memory is handed out again while the consumer reads it: record_stream is missing",
        HandoverMistake::NoRecord}});
}

// ---- the exercises on scripts

Exercise record_exercise() {
  return order_exercise(
      "rush::Event::record",
      {{work(1), record(1, 1), await(1, 2), work(2)},
       {work(1), record(1, 1), work(1), await(1, 2), work(2)},
       {work(1), record(1, 1), work(1), record(1, 1), await(1, 2), work(2)},
       {work(1), record(1, -1), await(1, 2), work(2)},
       {work(0), record(1, 1), await(1, 2), work(2)},
       {work(1), record(1, 1), await(1, 2), work(2), record(2, 2), await(2, 3), work(3)}},
      {{"nothing is recorded: whoever waits for the event waits for nothing", OrderMistake::NeverRecorded},
       {"an event that was recorded is not recorded again: it has to move to the new point", OrderMistake::RecordsOnce},
       {"the event is recorded on the current stream instead of the given one", OrderMistake::RecordsCurrent}});
}

Exercise block_exercise() {
  return order_exercise("rush::Event::block",
                        {{work(1), block(1, 2), work(2)},
                         {work(1), record(1, 1), block(1, 2), work(2)},
                         {work(1), record(1, 1), block(1, 2), work(0)},
                         {work(1), record(1, 1), block(1, -1), work(2)},
                         {work(1), record(1, 1), block(1, 2), record(2, 2), block(2, 3), work(3)}},
                        {{"the stream does not wait for the event", OrderMistake::BlocksNothing},
                         {"the current stream waits instead of the given one", OrderMistake::BlocksCurrent},
                         {"the host waits where only a stream has to", OrderMistake::HostAlwaysWaits}});
}

Exercise synchronize_exercise() {
  return order_exercise("rush::Event::synchronize",
                        {{host_waits(1), work(1)},
                         {work(1), record(1, 1), host_waits(1), work(2)},
                         {work(1), record(1, 1), work(1), host_waits(1), work(2)},
                         {work(1), record(1, 1), host_waits(1), work(2), record(2, 2), host_waits(2), work(3)}},
                        {{"the host does not wait", OrderMistake::HostDoesNotWait}});
}

Exercise query_exercise() {
  return order_exercise(
      "rush::Event::query",
      {{query(1), work(1), query(1)},
       {work(1), work(1), record(1, 1), query(1), query(1), query(1), query(1)},
       {work(1), record(1, 1), host_waits(1), query(1)}},
      {{"the event counts as reached though its stream has work before it", OrderMistake::AlwaysReached}});
}

Exercise wait_exercise() {
  return order_exercise(
      "rush::wait_stream",
      {{work(1), wait(2, 1), work(2)},
       {work(1), wait(1, 1), work(2)},
       {work(2), wait(2, 1), work(1)},
       {work(1), wait(2, 1), work(2), wait(1, 2), work(1)},
       {work(1), wait(2, 1), work(1), work(2)},
       {work(1), wait(2, 1), wait(3, 2), work(3)},
       {work(1), wait(-1, 1), work(2)}},
      {{"the streams have each other's place: `waiting` has to wait for `first`", OrderMistake::Reversed},
       {"a wait of the CPU's stream does nothing: the host has to wait", OrderMistake::CpuIsForgotten},
       {"`waiting` does not wait", OrderMistake::BlocksNothing},
       {"the host waits where only a stream has to", OrderMistake::HostAlwaysWaits}});
}

}  // namespace

std::vector<Exercise> stream_exercises() {
  emulated();
  return {guard_exercise(), record_exercise(), block_exercise(),   synchronize_exercise(),
          query_exercise(), wait_exercise(),   handover_exercise()};
}

}  // namespace rush::labs
