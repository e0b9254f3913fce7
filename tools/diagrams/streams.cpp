// What the streams of the emulated accelerator are given: its work waits in their queues until the host waits for it.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/device/hand_over.h"
#include "rushlight.h"
#include "tests/labs/device/accelerator.h"
#include "tools/diagrams/facts.h"

namespace rush::diagrams {

namespace {

// Three streams, and what each line of a program gives them.
class Timeline {
 public:
  enum Name : size_t { copies, main, side, kCount };

  // Runs a line on that stream.
  template <class Line>
  void run(const char* code, Name on, Line&& line) {
    {
      const StreamGuard guard((*this)[on]);
      line();
    }
    Json given = Json::array();
    for (size_t i = 0; i < kCount; ++i) note_given(i, given);
    lines_.push_back({{"code", code}, {"on", on}, {"given", given}});
  }

  const Stream& operator[](Name name) const { return streams_[name]; }
  Json facts() const { return {{"streams", {"copies", "main", "side"}}, {"lines", lines_}}; }

 private:
  static Stream from_pool() { return backend_of(labs::emulated().type).stream_from_pool(0); }

  // What is new in the stream's queue.
  void note_given(size_t i, Json& given) {
    const auto& queue = labs::streams().queued(labs::number_of(streams_[i]));
    for (; noted_[i] < queue.size(); ++noted_[i]) {
      const labs::Streams::Item& item = queue[noted_[i]];
      if (item.work) {
        given.push_back({{"stream", i}, {"kernel", item.work->op}});
      } else {
        given.push_back({{"stream", i}, {item.waits ? "waits" : "records", number_of(item.mark)}});
      }
    }
  }
  // Of an event's recording.
  size_t number_of(const labs::Streams::Mark& mark) {
    const Recording recording(mark.event, mark.number);
    const auto found = std::find(recordings_.begin(), recordings_.end(), recording);
    const auto number = static_cast<size_t>(found - recordings_.begin());
    if (found == recordings_.end()) recordings_.push_back(recording);
    return number;
  }

  using Recording = std::pair<std::shared_ptr<labs::EventState>, uint64_t>;
  const Stream streams_[kCount] = {from_pool(), current_stream(labs::emulated()), from_pool()};
  size_t noted_[kCount] = {};
  std::vector<Recording> recordings_;
  Json lines_ = Json::array();
};

// Of a line, what is shown is what is run.
#define RUSH_ON(stream, ...) timeline.run(#__VA_ARGS__, Timeline::stream, [&] { __VA_ARGS__; })

}  // namespace

Json stream_facts() {
  const NoGradGuard no_grad;
  const Device device = labs::emulated();
  const Tensor first = ones({4, 4}).pin_memory(), second = ones({4, 4}).pin_memory(), w = ones({4, 4}, device);
  labs::streams().synchronize();
  Timeline timeline;
  const Stream &copies = timeline[Timeline::copies], &main = timeline[Timeline::main], &side = timeline[Timeline::side];
  Event done(device.type);
  Tensor x, next, y, z, total, result;
  RUSH_ON(copies, x = first.to(device, true));
  RUSH_ON(main, hand_over(x, copies, main));
  RUSH_ON(copies, next = second.to(device, true));
  RUSH_ON(main, y = x.mm(w));
  RUSH_ON(main, done.record(main));
  RUSH_ON(main, z = y.tanh());
  RUSH_ON(side, done.block(side); y.record_stream(side));
  RUSH_ON(side, total = y.sum());
  RUSH_ON(main, hand_over(next, copies, main));
  RUSH_ON(main, result = next.mm(w));
  RUSH_ON(main, hand_over(total, side, main));
  RUSH_ON(main, result.mul_(total));
  labs::streams().synchronize();
  const std::string race = labs::races().take().text;
  RUSH_CHECK(race.empty(), "the streams' program has a race: ", race);
  return timeline.facts();
}

}  // namespace rush::diagrams
