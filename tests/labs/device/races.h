// The race detector of the emulated accelerator.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/labs/device/vector_clock.h"
#include "tests/labs/device/work.h"

namespace rush::labs {

struct Race {
  std::string text;              // empty: none
  size_t first = 0, second = 0;  // the streams of the earlier and of the later access
};

// Note [Races]
// Two kernels race if they access the same bytes, one of them writes, and no stream, event or wait of the host orders
// them. Each piece of work has a vector clock: its stream's, joined with those of the events that the stream has waited
// for and of what the host has waited for. Of two accesses the earlier one comes before the later one if the clock of
// the later work has reached the time of the earlier one in its stream. This finds a missing wait whatever order the
// work runs in. A tensor is taken to access all bytes from its first element to its last.
class RaceDetector {
 public:
  // Work that `stream` is given, at the time `clock`.
  void note(const Work& work, size_t stream, const VectorClock& clock);
  // Of memory that a graph uses after it was freed.
  void note_freed(const Work& work, const Access& access);
  // What was found first since the last call.
  Race take();
  // Forgets all accesses: those of a program that has ended.
  void clear();

 private:
  struct Past {
    Access access;
    std::string op;
    size_t stream;
    uint64_t time;
  };
  void compare(const Past& past, const Past& now);

  std::unordered_map<const void*, std::vector<Past>> pasts_;  // by block
  Race first_;
};

}  // namespace rush::labs
