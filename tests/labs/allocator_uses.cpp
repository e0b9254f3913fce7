// Lab 9: blocks that several streams use.
#include <map>

#include "tests/labs/script_exercise.h"

namespace rush::labs {
namespace {

Exercise record_stream_exercise() {
  return script_exercise(
      "record_stream",
      {{{take(512), use('a', 1)}},
       {{take(512), use('a', 0)}},
       {{take(512, 2), use('a', 2), use('a', 0), use('a', 1), use('a', 0)}}},
      {{"the block's own stream is recorded: its later work comes after all that it has, so there is nothing to wait "
        "for",
        BlockMistake::OwnStream},
       {"a stream is recorded each time: once is enough, and each costs an event", BlockMistake::StreamTwice},
       {"only the last stream is kept: the others may still use the block", BlockMistake::LastStreamOnly}});
}

struct Uses {
  std::vector<std::vector<int>> streams;  // of each block
};
struct Recorded {
  std::vector<int> events;   // their streams
  std::vector<int> waiting;  // for how many events each block waits
  std::string pending;
  size_t count = 0, streams_left = 0;
  friend bool operator==(const Recorded&, const Recorded&) = default;
};

Recorded learners_uses(const Uses& uses) {
  Player player(1024 * kMiB);
  Recorded recorded;
  for (size_t i = 0; i < uses.streams.size(); ++i) {
    player.play(take(512));
    for (int stream : uses.streams[i]) player.play({Step::Use, i, 0, stream});
  }
  for (size_t i = 0; i < uses.streams.size(); ++i) {
    player.steps.record_uses(player.taken(i));
    recorded.waiting.push_back(player.taken(i)->pending_events);
    recorded.streams_left += player.taken(i)->streams.size();
  }
  for (void* stream : player.memory().events)
    recorded.events.push_back(static_cast<int>(reinterpret_cast<size_t>(stream)));
  recorded.pending = player.steps.pending();
  recorded.count = player.steps.pending_count();
  return recorded;
}

enum class UseMistake { None, OneEvent, FirstStreamOnly, StreamsStay, NotCounted };

Recorded right_uses(const Uses& uses, UseMistake mistake) {
  Recorded recorded;
  std::map<int, std::string> by_stream;
  for (std::vector<int> streams : uses.streams) {
    recorded.streams_left += mistake == UseMistake::StreamsStay ? streams.size() : 0;
    if (mistake == UseMistake::FirstStreamOnly) streams.resize(1);
    for (int stream : streams) {
      recorded.events.push_back(stream);
      by_stream[stream] += str(" ", recorded.events.size());
    }
    recorded.waiting.push_back(mistake == UseMistake::OneEvent ? 1 : static_cast<int>(streams.size()));
  }
  if (mistake != UseMistake::NotCounted) recorded.count = recorded.events.size();
  for (const auto& [stream, events] : by_stream) {
    recorded.pending += str(recorded.pending.empty() ? "" : "; ", "stream ", stream, ":", events);
  }
  return recorded;
}

std::string fault_of_uses(const Uses& uses, const Recorded& got) {
  const Recorded right = right_uses(uses, UseMistake::None);
  const auto list = [](const std::vector<int>& numbers) {
    std::string text;
    for (int number : numbers) text += str(text.empty() ? "" : ", ", number);
    return str("(", text, ")");
  };
  if (got.events != right.events) {
    return str("events are recorded on the streams ", list(got.events), " and have to be on ", list(right.events));
  }
  if (got.waiting != right.waiting) {
    return str("pending_events of the blocks are ", list(got.waiting), " and have to be ", list(right.waiting));
  }
  if (got.pending != right.pending) {
    return str("`pending_` has the events (", got.pending, ") and has to have (", right.pending, ")");
  }
  if (got.count != right.count) return str("`pending_count_` is ", got.count, " and has to be ", right.count);
  return got.streams_left == 0 ? ""
                               : "block->streams has to be empty afterwards: the record serves another block later";
}

Exercise record_uses_exercise() {
  Subject<Uses, Recorded> subject;
  subject.function = name_of("record_uses");
  subject.inputs = {{{{1}}}, {{{1, 2}}}, {{{1}, {2, 1}, {3}}}};
  subject.learners = learners_uses;
  subject.describe = [](const Uses& uses) {
    std::string text;
    for (const auto& streams : uses.streams) text += str(text.empty() ? "" : "; ", "a block", streams_text(streams));
    return text;
  };
  subject.same = std::equal_to<>();
  subject.fault = fault_of_uses;
  for (const auto& [name, mistake] : std::vector<std::pair<const char*, UseMistake>>{
           {"the block waits for one event only: it would be reused while another stream still uses it",
            UseMistake::OneEvent},
           {"only the first stream gets an event: the block would be reused while another stream still uses it",
            UseMistake::FirstStreamOnly},
           {"block->streams keeps the streams", UseMistake::StreamsStay},
           {"the uses are not counted: allocate() asks for events only while pending_count_ is not 0",
            UseMistake::NotCounted}}) {
    subject.mistakes.push_back({name, [mistake = mistake](const Uses& uses) { return right_uses(uses, mistake); }});
  }
  return exercise(std::move(subject));
}

const std::vector<Step> kTwoWait = {take(512), take(1024), take(512), use('a', 1), use('b', 1), give('a'), give('b')};

std::vector<Step> then(std::vector<Step> steps, const std::vector<Step>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

Exercise collect_exercise() {
  return script_exercise(
      "collect_reached",
      {{{take(512), use('a', 1), give('a'), take(2048), reach(1), take(512)}},
       {then(kTwoWait, {take(4096), reach(1), take(12 * kMiB), reach(2), take(1536)})},
       {then(kTwoWait, {reach(2), take(1536)})},
       {{take(512), take(2048), use('a', 1), use('a', 2), give('a'), reach(1), take(512), reach(2), take(512)}},
       {{take(512), take(2048), take(512), use('a', 1), give('a'), give('b'), reach(1), take(2560)}}},
      {{"a block is given back when the first of its events is reached, while another stream still uses it",
        BlockMistake::FirstEventFrees},
       {"a block is given back without its event being reached: another stream still uses it",
        BlockMistake::NoEventNeeded},
       {"only the first use of each stream is looked at: all that are reached are over", BlockMistake::OneOfEachStream},
       {"a freed block merges with a neighbour that waits for another stream: is_free() says whether it may",
        BlockMistake::MergesWaiting},
       {"a freed block merges with a neighbour that waits for another stream, the one behind it: is_free() says "
        "whether it may",
        BlockMistake::MergesWaitingAfter}});
}

Exercise wait_exercise() {
  return script_exercise("wait_for_all",
                         {{{take(12 * kMiB), use('a', 1), give('a'), take(14 * kMiB)}, 24 * kMiB},
                          {{take(11 * kMiB), take(10 * kMiB), use('a', 1), use('b', 1), use('b', 2), give('a'),
                            give('b'), take(22 * kMiB)},
                           24 * kMiB}},
                         {{"nothing is waited for: the blocks are given back while other streams still use them",
                           BlockMistake::DoesNotWait}});
}

}  // namespace

std::vector<Exercise> allocator_use_exercises() {
  return {record_stream_exercise(), record_uses_exercise(), collect_exercise(), wait_exercise()};
}

}  // namespace rush::labs
