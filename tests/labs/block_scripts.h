// Scripts for lab 9: requests to the caching allocator, what it holds after each step, and a model of it that keeps
// blocks in plain lists, scans them, and counts everything from the beginning after each step.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/memory/device_allocator.h"
#include "core/str.h"
#include "tests/labs/host_memory.h"

namespace rush::cuda {

// Calls the steps of the allocator that programs cannot call.
struct AllocatorSteps {
  DeviceAllocator& allocator;

  static size_t round_size(size_t nbytes) { return DeviceAllocator::round_size(nbytes); }
  StreamPool& pool(bool small) { return allocator.pool(nullptr, small, 0); }
  Block* new_block() { return allocator.new_block(); }
  Block* take_from_driver(StreamPool& pool, size_t size) { return allocator.take_from_driver(pool, size); }
  Block* take_free(StreamPool& pool, size_t size) { return allocator.take_free(pool, size); }
  bool should_split(const Block& block, size_t size) { return allocator.should_split(block, size); }
  void split(Block* block, size_t size) { allocator.split(block, size); }
  void take_off_list(Block* block) { allocator.take_off_list(block); }
  void absorb_next(Block* block) { allocator.absorb_next(block); }
  void record_uses(Block* block) { allocator.record_uses(block); }
  const std::vector<Block*>& segments() { return allocator.segments_; }
  size_t pending_count() { return allocator.pending_count_; }

  // "stream 1: 1 3; stream 2: 2", the events that each stream's blocks wait for.
  std::string pending() {
    std::map<size_t, std::string> by_stream;
    for (const auto& [stream, uses] : allocator.pending_) {
      for (const auto& use : uses) {
        by_stream[reinterpret_cast<size_t>(stream)] += str(" ", reinterpret_cast<size_t>(use.event));
      }
    }
    std::string text;
    for (const auto& [stream, events] : by_stream)
      text += str(text.empty() ? "" : "; ", "stream ", stream, ":", events);
    return text;
  }
  std::set<const Block*> on_lists() {
    constexpr size_t kMost = 1000;
    std::set<const Block*> blocks;
    for (const auto& pool : allocator.pools_) {
      size_t seen = 0;
      for (Block* block = pool->free.smallest(); block && ++seen < kMost; block = pool->free.next(block)) {
        blocks.insert(block);
      }
    }
    return blocks;
  }
};

}  // namespace rush::cuda

namespace rush::labs {

inline constexpr size_t kMiB = 1024 * 1024;

inline void* stream_of(int number) { return reinterpret_cast<void*>(static_cast<size_t>(number)); }

// ---- scripts ----

struct Step {
  enum What { Take, Use, Give, Reach } what;
  size_t number = 0;  // of a block, in the order in which they were taken; of an event
  size_t nbytes = 0;
  int stream = 0;

  std::string text() const {
    const std::string on = stream == 0 ? "" : str(", stream ", stream), name(1, static_cast<char>('a' + number));
    switch (what) {
      case Take: return str("take(", nbytes, on, ")");
      case Use: return str("record_stream(", name, on, ")");
      case Give: return str("give ", name);
      default: return str("event ", number, " is reached");
    }
  }
};
inline Step take(size_t nbytes, int stream = 0) { return {Step::Take, 0, nbytes, stream}; }
inline Step use(char block, int stream) { return {Step::Use, static_cast<size_t>(block - 'a'), 0, stream}; }
inline Step give(char block) { return {Step::Give, static_cast<size_t>(block - 'a')}; }
inline Step reach(size_t event) { return {Step::Reach, event}; }

struct Script {
  std::vector<Step> steps;
  size_t total = 1024 * kMiB;  // of the device
};

inline std::string show(const Script& script) {
  std::string text;
  char name = 'a';
  for (const Step& step : script.steps) {
    if (!text.empty()) text += "; ";
    if (step.what == Step::Take) text += str(std::string(1, name++), " = ");
    text += step.text();
  }
  return script.total == 1024 * kMiB ? text : str(text, ", on a device of ", script.total / kMiB, " MiB");
}

// ---- what the allocator holds ----

struct Cell {
  size_t offset, size;  // in the segment
  std::string kind;
  friend bool operator==(const Cell&, const Cell&) = default;
};
using Cells = std::vector<Cell>;

struct State {
  std::vector<Cells> segments;
  std::map<std::string, int64_t> counts;
  friend bool operator==(const State&, const State&) = default;
};
using States = std::vector<State>;

inline std::string show(const Cell& cell) { return str(cell.size, " bytes at ", cell.offset, ", ", cell.kind); }

inline std::string streams_text(const std::vector<int>& streams) {
  std::string text;
  for (int stream : streams) text += str(text.empty() ? ", used by stream " : " and ", stream);
  return text;
}

// The first difference; empty where there is none.
inline std::string difference(const Cells& got, const Cells& right) {
  for (size_t i = 0; i < std::max(got.size(), right.size()); ++i) {
    if (i < got.size() && i < right.size() && got[i] == right[i]) continue;
    const auto at = [i](const Cells& cells) { return i < cells.size() ? show(cells[i]) : "nothing"; };
    return str("block ", i, " is ", at(got), "; it has to be ", at(right));
  }
  return {};
}
inline std::string difference(const State& got, const State& right) {
  for (size_t i = 0; i < std::max(got.segments.size(), right.segments.size()); ++i) {
    const auto at = [i](const State& state) { return i < state.segments.size() ? state.segments[i] : Cells(); };
    const std::string text = difference(at(got), at(right));
    if (!text.empty()) return str("in segment ", i, " ", text);
  }
  for (const auto& [name, count] : right.counts) {
    if (got.counts.at(name) != count) return str(name, ": ", got.counts.at(name), "; it has to be ", count);
  }
  return {};
}

// A segment's blocks, by their addresses. `owners` has the letters of blocks that were handed out.
inline Cells cells_of(const cuda::Block* first, const std::set<const cuda::Block*>& on_lists,
                      const std::map<const cuda::Block*, char>& owners) {
  constexpr size_t kMost = 100;
  Cells cells;
  const cuda::Block* before = nullptr;
  for (const cuda::Block* block = first; block && cells.size() < kMost; block = block->after) {
    const bool is_on_list = on_lists.count(block) != 0;
    std::string kind = "on no list and not in use";
    if (is_on_list) kind = "free";
    if (block->pending_events > 0) kind = "waiting";
    if (block->in_use) {
      kind = str("in use", owners.count(block) ? str(" by ", std::string(1, owners.at(block))) : "");
      std::vector<int> streams;
      for (void* stream : block->streams) streams.push_back(static_cast<int>(reinterpret_cast<size_t>(stream)));
      kind += streams_text(streams);
    }
    if (is_on_list && kind != "free") kind += ", and on a list of free blocks";
    if (block->before != before) kind += ", with a wrong `before`";
    cells.push_back({static_cast<size_t>(block->data - first->data), block->size, kind});
    before = block;
  }
  return cells;
}

// ---- the learner's allocator ----

class Player {
 public:
  explicit Player(size_t total) : memory_(total), allocator_(0, memory_, {}) {}

  void play(const Step& step) {
    switch (step.what) {
      case Step::Take:
        taken_.push_back(allocator_.allocate(step.nbytes, stream_of(step.stream)));
        owners_[taken_.back()] = static_cast<char>('a' + taken_.size() - 1);
        break;
      case Step::Use: allocator_.record_stream(taken_.at(step.number), stream_of(step.stream)); break;
      case Step::Give: allocator_.deallocate(taken_.at(step.number)); break;
      case Step::Reach: memory_.reached_events = step.number;
    }
  }
  State state() {
    State state;
    const auto on_lists = steps.on_lists();
    for (const cuda::Block* first : steps.segments()) state.segments.push_back(cells_of(first, on_lists, owners_));
    const cuda::MemoryStats stats = allocator_.stats();
    state.counts = {{"events recorded", static_cast<int64_t>(memory_.events.size())},
                    {"events reached", static_cast<int64_t>(memory_.reached_events)},
                    {"stats: allocated_bytes", stats.allocated_bytes.all.current},
                    {"stats: allocation", stats.allocation.all.current},
                    {"stats: active_bytes", stats.active_bytes.all.current},
                    {"stats: active", stats.active.all.current},
                    {"stats: requested_bytes", stats.requested_bytes.all.current},
                    {"stats: inactive_split_bytes", stats.inactive_split_bytes.all.current},
                    {"stats: inactive_split", stats.inactive_split.all.current}};
    return state;
  }
  HostMemory& memory() { return memory_; }
  cuda::Block* taken(size_t number) { return taken_.at(number); }

 private:
  HostMemory memory_;
  cuda::DeviceAllocator allocator_;
  std::vector<cuda::Block*> taken_;
  std::map<const cuda::Block*, char> owners_;

 public:
  cuda::AllocatorSteps steps{allocator_};
};

// ---- the model ----

enum class BlockMistake {
  None,
  NothingCutOff,
  NotInUse,
  CountsRequested,
  RequestedIsRounded,
  NoMergeBefore,
  NoMergeAfter,
  NoMerge,
  MergesWaiting,
  MergesWaitingAfter,
  StaysActive,
  StaysRequested,
  OnNoList,
  OwnStream,
  StreamTwice,
  LastStreamOnly,
  FirstEventFrees,
  NoEventNeeded,
  OneOfEachStream,
  DoesNotWait,
};

class Model {
 public:
  Model(size_t total, BlockMistake mistake) : total_(total), mistake_(mistake) {}

  void play(const Step& step) {
    switch (step.what) {
      case Step::Take: take(step); break;
      case Step::Use: use(find(step.number), step.stream); break;
      case Step::Give: give(find(step.number)); break;
      case Step::Reach: reached_ = step.number;
    }
  }

  State state() const {
    State state;
    auto& counts = state.counts;
    for (const char* name : {"allocated", "active", "requested", "inactive_split"}) {
      counts[str("stats: ", name, "_bytes")] = 0;
      if (std::string(name) != "requested")
        counts[str("stats: ", name == std::string("allocated") ? "allocation" : name)] = 0;
    }
    for (const Segment& segment : segments_) {
      Cells cells;
      size_t offset = 0;
      for (const Owned& block : segment.blocks) {
        cells.push_back({offset, block.size, kind(block)});
        offset += block.size;
        count(block, segment.blocks.size() > 1, counts);
      }
      state.segments.push_back(cells);
    }
    counts["events recorded"] = static_cast<int64_t>(events_.size());
    counts["events reached"] = static_cast<int64_t>(reached_);
    counts["stats: active_bytes"] += active_for_ever_;
    counts["stats: active"] += active_for_ever_ > 0 ? given_back_ : 0;
    counts["stats: requested_bytes"] += requested_for_ever_;
    return state;
  }

 private:
  struct Owned {
    size_t size = 0, requested = 0, number = 0;  // the number of its owner
    bool in_use = false, is_lost = false;
    std::vector<int> streams = {};
    std::set<size_t> events = {};  // that it waits for

    bool is_free() const { return !in_use && events.empty() && !is_lost; }
  };
  struct Segment {
    int stream;
    bool is_small;
    std::vector<Owned> blocks;
  };
  struct Place {
    Segment* segment = nullptr;
    size_t index = 0;
    Owned& block() const { return segment->blocks[index]; }
  };
  struct Event {
    int stream;
    size_t owner;
    bool is_over = false;
  };

  bool is(BlockMistake mistake) const { return mistake_ == mistake; }

  std::string kind(const Owned& block) const {
    if (!block.events.empty()) return "waiting";
    if (block.in_use && is(BlockMistake::NotInUse)) return "on no list and not in use";
    if (block.is_lost) return "on no list and not in use";
    if (!block.in_use) return "free";
    return str("in use by ", std::string(1, static_cast<char>('a' + block.number)), streams_text(block.streams));
  }

  void count(const Owned& block, bool is_split, std::map<std::string, int64_t>& counts) const {
    const auto size = static_cast<int64_t>(is(BlockMistake::CountsRequested) ? block.requested : block.size);
    const bool is_active = block.in_use || !block.events.empty();
    counts["stats: allocated_bytes"] += block.in_use ? size : 0;
    counts["stats: allocation"] += block.in_use;
    counts["stats: active_bytes"] += is_active ? size : 0;
    counts["stats: active"] += is_active;
    const size_t requested =
        is(BlockMistake::RequestedIsRounded) ? (block.requested + 511) / 512 * 512 : block.requested;
    counts["stats: requested_bytes"] += is_active ? static_cast<int64_t>(requested) : 0;
    if (is_active || !is_split) return;
    counts["stats: inactive_split_bytes"] += static_cast<int64_t>(block.size);
    ++counts["stats: inactive_split"];
  }

  Place find(size_t number) {
    for (Segment& segment : segments_) {
      for (size_t i = 0; i < segment.blocks.size(); ++i) {
        const Owned& block = segment.blocks[i];
        if (block.number == number && (block.in_use || !block.events.empty())) return {&segment, i};
      }
    }
    return {};
  }

  // The smallest free block, among all.
  Place smallest(size_t size, int stream) {
    Place best;
    for (Segment& segment : segments_) {
      if (segment.stream != stream || segment.is_small != (size <= kMiB)) continue;
      for (size_t i = 0; i < segment.blocks.size(); ++i) {
        const Owned& block = segment.blocks[i];
        if (block.is_free() && block.size >= size && (!best.segment || block.size < best.block().size))
          best = {&segment, i};
      }
    }
    return best;
  }

  // A new segment; false where the device has no more.
  bool grow(size_t size, int stream) {
    const size_t large = size < 10 * kMiB ? 20 * kMiB : (size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    const size_t nbytes = size <= kMiB ? 2 * kMiB : large;
    size_t used = nbytes;
    for (const Segment& segment : segments_) {
      for (const Owned& block : segment.blocks) used += block.size;
    }
    if (used > total_) return false;
    segments_.push_back({stream, size <= kMiB, {Owned{nbytes}}});
    return true;
  }

  void take(const Step& step) {
    collect(/*wait=*/false);
    const size_t size = std::max<size_t>(512, (step.nbytes + 511) / 512 * 512), number = taken_++;
    Place place = smallest(size, step.stream);
    if (!place.segment && !grow(size, step.stream)) {
      collect(/*wait=*/true);
      std::erase_if(segments_, [](const Segment& s) { return s.blocks.size() == 1 && s.blocks[0].is_free(); });
      RUSH_CHECK(grow(size, step.stream), "the script asks for more than there is");
    }
    if (!place.segment) place = smallest(size, step.stream);
    const size_t rest = place.block().size - size;
    if (!is(BlockMistake::NothingCutOff) && rest > 0 && (place.segment->is_small || rest > kMiB)) {
      place.block().size = size;
      place.segment->blocks.insert(place.segment->blocks.begin() + static_cast<std::ptrdiff_t>(place.index) + 1,
                                   Owned{rest});
    }
    Owned& block = place.block();
    block.requested = step.nbytes;
    block.number = number;
    block.in_use = true;
  }

  void use(const Place& place, int stream) {
    auto& streams = place.block().streams;
    if (stream == place.segment->stream && !is(BlockMistake::OwnStream)) return;
    if (is(BlockMistake::LastStreamOnly)) streams.clear();
    const bool is_new = std::find(streams.begin(), streams.end(), stream) == streams.end();
    if (is_new || is(BlockMistake::StreamTwice)) streams.push_back(stream);
  }

  void give(const Place& place) {
    Owned& block = place.block();
    block.in_use = false;
    for (int stream : block.streams) {
      events_.push_back({stream, block.number});
      block.events.insert(events_.size());
    }
    block.streams.clear();
    if (block.events.empty()) give_back(place);
  }

  // Blocks whose events are over are free again.
  void collect(bool wait) {
    if (wait && !is(BlockMistake::DoesNotWait)) reached_ = std::max(reached_, events_.size());
    std::set<int> done;  // streams
    for (size_t i = 0; i < events_.size(); ++i) {
      Event& event = events_[i];
      const bool is_reached = i < reached_ || wait || is(BlockMistake::NoEventNeeded);
      if (event.is_over || !is_reached || (is(BlockMistake::OneOfEachStream) && !done.insert(event.stream).second))
        continue;
      event.is_over = true;
      const Place place = find(event.owner);
      if (!place.segment) continue;  // with the mistake that the first event frees
      auto& events = place.block().events;
      events.erase(i + 1);
      if (is(BlockMistake::FirstEventFrees)) events.clear();
      if (events.empty()) give_back(place);
    }
  }

  void give_back(const Place& place) {
    Owned& block = place.block();
    ++given_back_;
    if (is(BlockMistake::StaysActive)) active_for_ever_ += static_cast<int64_t>(block.size);
    if (is(BlockMistake::StaysRequested)) requested_for_ever_ += static_cast<int64_t>(block.requested);
    block.requested = 0;
    auto& blocks = place.segment->blocks;
    const auto takes = [&](size_t i) {
      if (i >= blocks.size()) return false;
      const bool also_waiting =
          is(BlockMistake::MergesWaiting) || (is(BlockMistake::MergesWaitingAfter) && i > place.index);
      return blocks[i].is_free() || (also_waiting && !blocks[i].in_use);
    };
    size_t first = place.index, last = place.index;
    if (!is(BlockMistake::NoMerge) && !is(BlockMistake::NoMergeAfter) && takes(last + 1)) ++last;
    if (!is(BlockMistake::NoMerge) && !is(BlockMistake::NoMergeBefore) && first > 0 && takes(first - 1)) --first;
    Owned merged;
    for (size_t i = first; i <= last; ++i) merged.size += blocks[i].size;
    merged.is_lost = is(BlockMistake::OnNoList);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(first),
                 blocks.begin() + static_cast<std::ptrdiff_t>(last));
    blocks[first] = merged;
  }

  const size_t total_;
  const BlockMistake mistake_;
  std::vector<Segment> segments_;
  std::vector<Event> events_;
  size_t taken_ = 0, reached_ = 0;
  int64_t given_back_ = 0, active_for_ever_ = 0, requested_for_ever_ = 0;
};

inline States model_states(const Script& script, BlockMistake mistake = BlockMistake::None) {
  Model model(script.total, mistake);
  States states;
  for (const Step& step : script.steps) {
    model.play(step);
    states.push_back(model.state());
  }
  return states;
}

// The states of the learner's allocator, up to the first that is wrong: what comes after it means nothing.
inline States learners_states(const Script& script) {
  const States right = model_states(script);
  Player player(script.total);
  States states;
  for (const Step& step : script.steps) {
    player.play(step);
    states.push_back(player.state());
    if (!(states.back() == right[states.size() - 1])) break;
  }
  return states;
}

inline std::string fault_of_states(const Script& script, const States& states) {
  const States right = model_states(script);
  for (size_t i = 0; i < states.size(); ++i) {
    const std::string text = difference(states[i], right[i]);
    if (!text.empty())
      return str("first wrong element: after `", script.steps[i].text(), "`, step ", i + 1, ", ", text);
  }
  return {};
}

// Whether the states are those of the mistake, up to the step at which it shows. Where blocks are lost the counts say
// so or not, so that only the lists are compared.
inline bool explains(const States& wrong, const States& right, const States& states, bool lists_only) {
  for (size_t i = 0; i < states.size(); ++i) {
    if (lists_only ? states[i].segments != wrong[i].segments : !(states[i] == wrong[i])) return false;
    if (!(wrong[i] == right[i])) return true;
  }
  return true;
}
inline bool explains(BlockMistake mistake, const Script& script, const States& states) {
  const bool lists_only = mistake == BlockMistake::MergesWaiting || mistake == BlockMistake::MergesWaitingAfter ||
                          mistake == BlockMistake::OnNoList;
  return explains(model_states(script, mistake), model_states(script), states, lists_only);
}

}  // namespace rush::labs
