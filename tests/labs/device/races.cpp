#include "tests/labs/device/races.h"

#include <utility>

#include "core/str.h"
#include "tests/labs/device/accelerator.h"

namespace rush::labs {

namespace {

bool overlap(const Access& a, const Access& b) { return a.begin < b.end && b.begin < a.end; }
bool covers(const Access& a, const Access& b) { return a.begin <= b.begin && b.end <= a.end; }

}  // namespace

void RaceDetector::compare(const Past& past, const Past& now) {
  if (!first_.text.empty()) return;
  const auto show = [](const Past& each) {
    return str(each.op, each.access.writes ? " writes " : " reads ", each.access.tensor, " on stream ", each.stream);
  };
  first_ = {str(show(past), ", then ", show(now), ", the same memory: no event orders them"), past.stream, now.stream};
  if (past.access.use != now.access.use) {
    first_.text += ". The block was freed in between and handed out again: record_stream is missing";
  }
}

void RaceDetector::note(const Work& work, size_t stream, const VectorClock& clock) {
  for (const Access& access : work.accesses) {
    Past now{access, work.op, stream, clock.at(stream)};
    now.access.use = use_of(access.block);
    std::vector<Past>& pasts = pasts_[access.block];
    for (const Past& past : pasts) {
      const bool conflict = overlap(past.access, access) && (past.access.writes || access.writes);
      if (conflict && clock.at(past.stream) < past.time) compare(past, now);
    }
    // What comes after this access comes after those, too.
    std::erase_if(pasts, [&](const Past& past) {
      const bool stands_for = access.writes || (!past.access.writes && past.stream == stream);
      return stands_for && covers(access, past.access);
    });
    pasts.push_back(std::move(now));
  }
}

void RaceDetector::note_freed(const Work& work, const Access& access) {
  if (!first_.text.empty()) return;
  first_.text = str(work.op, " of a graph ", access.writes ? "writes " : "reads ", access.tensor,
                    ", whose memory was freed after the capture");
}

Race RaceDetector::take() { return std::exchange(first_, {}); }

void RaceDetector::clear() {
  pasts_.clear();
  first_ = {};
}

}  // namespace rush::labs
