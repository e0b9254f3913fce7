// Lab 9: the caching allocator, on the scripts of block_scripts.h. Uses by other streams are in allocator_uses.cpp.
#include "backends/cuda/memory/device_allocator.h"

#include <optional>

#include "tests/labs/script_exercise.h"

namespace rush::labs {
namespace {

constexpr size_t kUnit = 512;

// ---- round_size ----

Exercise rounding_exercise() {
  Subject<size_t, size_t> subject;
  subject.function = name_of("round_size");
  subject.inputs = {1, 100, 511, 512, 513, 1024, 1025, kMiB, kMiB + 1, 10 * kMiB - 1};
  subject.learners = cuda::AllocatorSteps::round_size;
  subject.describe = [](size_t nbytes) { return str("round_size(", nbytes, ")"); };
  subject.same = std::equal_to<>();
  subject.fault = [](size_t nbytes, size_t got) -> std::string {
    size_t right = kUnit;
    while (right < nbytes) right += kUnit;
    return got == right ? "" : str("it gives ", got, " and has to give ", right);
  };
  subject.mistakes = {
      {"the size is not rounded: then blocks begin anywhere, and one that is freed fits no other request",
       [](size_t nbytes) { return std::max(kUnit, nbytes); }},
      {"the size is not rounded: not even small ones are", [](size_t nbytes) { return nbytes; }},
      {"the size is rounded down: the block is smaller than the request",
       [](size_t nbytes) { return std::max(kUnit, nbytes / kUnit * kUnit); }},
      {"a size that is a multiple of 512 gets 512 bytes more",
       [](size_t nbytes) { return (nbytes / kUnit + 1) * kUnit; }},
  };
  return exercise(std::move(subject));
}

// ---- best_fit ----

struct Fit {
  std::vector<size_t> free;  // sizes, in units of 512 bytes
  size_t wanted;
};

// Lists have a size each below 64 units, and above are 32 to a doubling.
bool share_a_list(size_t a, size_t b) {
  size_t width = 1;
  while (64 * width <= std::max(a, b)) width *= 2;
  return a == b || (std::min(a, b) >= 32 * width && a / width == b / width);
}

std::optional<size_t> smallest_of(const Fit& fit, const std::function<bool(size_t)>& may) {
  std::optional<size_t> best;
  for (size_t units : fit.free) {
    if (may(units) && (!best || units < *best)) best = units;
  }
  return best;
}

std::optional<size_t> right_fit(const Fit& fit) {
  return smallest_of(fit, [&](size_t units) { return units >= fit.wanted; });
}

std::optional<size_t> learners_fit(const Fit& fit) {
  cuda::FreeBlocks lists;
  std::vector<cuda::Block> blocks(fit.free.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].size = fit.free[i] * kUnit;
    lists.insert(&blocks[i]);
  }
  const cuda::Block* found = lists.best_fit(fit.wanted * kUnit);
  return found ? std::optional(found->size / kUnit) : std::nullopt;
}

std::string show(const std::optional<size_t>& units) {
  return units ? str("a block of ", *units, " units") : std::string("none");
}

Exercise fit_exercise() {
  Subject<Fit, std::optional<size_t>> subject;
  subject.function = "rush::cuda::FreeBlocks::best_fit";
  subject.inputs = {{{}, 1},
                    {{8}, 8},
                    {{40, 8, 20}, 9},
                    {{3, 5}, 6},
                    {{200}, 3},
                    {{128, 130}, 129},
                    {{128, 400, 300}, 130},
                    {{129, 131, 128}, 131},
                    {{64, 63}, 64},
                    {{5000, 4097}, 4096}};
  subject.learners = learners_fit;
  subject.describe = [](const Fit& fit) {
    std::string sizes;
    for (size_t units : fit.free) sizes += str(sizes.empty() ? "" : ", ", units);
    return str("best_fit of ", fit.wanted, " units of 512 bytes, among free blocks of (", sizes, ") units");
  };
  subject.same = std::equal_to<>();
  subject.fault = [](const Fit& fit, const std::optional<size_t>& got) -> std::string {
    const auto right = right_fit(fit);
    return got == right ? "" : str("it gives ", show(got), " and has to give ", show(right));
  };
  subject.mistakes = {
      {"worst fit in place of best fit: the largest block is cut, and later there is none for a large request",
       [](const Fit& fit) {
         const auto largest = fit.free.empty() ? 0 : *std::max_element(fit.free.begin(), fit.free.end());
         return largest >= fit.wanted && largest > 0 ? std::optional(largest) : std::nullopt;
       }},
      {"a block that is too small is given: above 32 KiB the blocks of a list have several sizes",
       [](const Fit& fit) {
         return smallest_of(fit, [&](size_t u) { return u >= fit.wanted || share_a_list(u, fit.wanted); });
       }},
      {"only the list of that size is searched: lists of larger sizes serve the request, too",
       [](const Fit& fit) {
         return smallest_of(fit, [&](size_t u) { return u >= fit.wanted && share_a_list(u, fit.wanted); });
       }},
      {"a block of exactly that size is passed over",
       [](const Fit& fit) { return smallest_of(fit, [&](size_t units) { return units > fit.wanted; }); }},
      {"only lists of larger sizes are searched",
       [](const Fit& fit) {
         return smallest_of(fit, [&](size_t u) { return u >= fit.wanted && !share_a_list(u, fit.wanted); });
       }},
  };
  return exercise(std::move(subject));
}

// ---- should_split ----

struct Cut {
  size_t block, size;
  bool is_small;
  bool right;
  bool is_expandable = false;
  size_t max_split = cuda::AllocatorConfig().max_split_size;
};

bool learners_cut(const Cut& cut) {
  HostMemory memory(0);
  cuda::AllocatorConfig config;
  config.max_split_size = cut.max_split;
  cuda::DeviceAllocator allocator(0, memory, config);
  cuda::StreamPool pool(nullptr, cut.is_small, 0);
  cuda::Block block;
  block.size = cut.block;
  block.pool = &pool;
  block.expandable = cut.is_expandable;
  return cuda::AllocatorSteps{allocator}.should_split(block, cut.size);
}

Exercise cut_exercise() {
  Subject<Cut, bool> subject;
  subject.function = name_of("should_split");
  const size_t large = 20 * kMiB, limit = 64 * kMiB;
  subject.inputs = {{2 * kMiB, 512, true, true},
                    {1024, 1024, true, false},
                    {1536, 1024, true, true},
                    {large, 2 * kMiB, false, true},
                    {large, large - 512, false, false},
                    {large, large - kMiB, false, false},
                    {large, large - kMiB - 512, false, true},
                    {large, large - 512, false, true, /*is_expandable=*/true},
                    {100 * kMiB, 65 * kMiB, false, false, false, limit},
                    {100 * kMiB, 64 * kMiB, false, false, false, limit},
                    {large, 2 * kMiB, false, true, false, limit}};
  subject.learners = learners_cut;
  subject.describe = [](const Cut& cut) {
    return str("should_split(a block of ", cut.block, " bytes in a ", cut.is_small ? "small" : "large", " pool",
               cut.is_expandable ? ", of an expandable segment" : "", ", ", cut.size, ")",
               cut.max_split < 1000 * kMiB ? str(" with a max_split_size of ", cut.max_split) : "");
  };
  subject.same = std::equal_to<>();
  subject.fault = [](const Cut& cut, bool got) -> std::string {
    return got == cut.right
               ? ""
               : str("it gives ", got ? "true" : "false", " for a rest of ", cut.block - cut.size, " bytes");
  };
  const auto rest = [](const Cut& cut) { return cut.block - cut.size; };
  subject.mistakes = {
      {"every block is split, however little is left: in a large pool a rest has to be more than 1 MiB",
       [=](const Cut& cut) { return rest(cut) >= kUnit && (cut.is_small || cut.size < cut.max_split); }},
      {"no block is split: a request for 512 bytes then takes 2 MiB", [](const Cut&) { return false; }},
      {"the rest of exactly 1 MiB is cut off: it has to be more",
       [=](const Cut& cut) {
         if (cut.is_small || cut.is_expandable) return rest(cut) >= kUnit;
         return cut.size < cut.max_split && rest(cut) >= kMiB;
       }},
      {"max_split_size is ignored: requests of that size and more take blocks whole",
       [=](const Cut& cut) { return rest(cut) >= (cut.is_small || cut.is_expandable ? kUnit : kMiB + 1); }},
      {"blocks of expandable segments are cut as rarely as those of large pools: of them a rest of 512 bytes is enough",
       [=](const Cut& cut) {
         return cut.is_small ? rest(cut) >= kUnit : cut.size < cut.max_split && rest(cut) > kMiB;
       }},
  };
  return exercise(std::move(subject));
}

// ---- split and absorb_next ----

// Of a segment of 2 MiB, its blocks are split, or absorb the next.
struct Edit {
  size_t block;     // by its position
  size_t size = 0;  // 0: it absorbs the next
};
using Edits = std::vector<Edit>;

enum class EditMistake {
  None,
  KeepsSize,
  RestOnNoList,
  NotCounted,
  RestInUse,
  NextUnaware,
  RestIsLast,
  SizeNotAdded,
  AfterIsLost,
  AfterUnaware
};

// The same edits of a list of blocks.
States right_edits(const Edits& edits, EditMistake mistake) {
  const std::string off_list = "on no list and not in use", wrong_before = ", with a wrong `before`";
  Cells cells = {{0, 2 * kMiB, off_list}};
  const auto from = [&](size_t i) { return cells.begin() + static_cast<std::ptrdiff_t>(std::min(i, cells.size())); };
  const auto misdirect = [&](size_t i) {
    if (i < cells.size()) cells[i].kind += wrong_before;
  };
  States states;
  for (const auto& [at, size] : edits) {
    if (at >= cells.size() || (size == 0 && at + 1 == cells.size())) break;  // of the mistake
    Cell& cell = cells[at];
    cell.kind = off_list;
    if (size > 0) {
      Cell rest{cell.offset + size, cell.size - size, "free"};
      if (mistake == EditMistake::RestOnNoList) rest.kind = off_list;
      if (mistake == EditMistake::RestInUse) rest.kind = "in use, and on a list of free blocks";
      if (mistake != EditMistake::KeepsSize) cell.size = size;
      if (mistake == EditMistake::RestIsLast) cells.erase(from(at + 1), cells.end());
      cells.insert(from(at + 1), rest);
      if (mistake == EditMistake::NextUnaware) misdirect(at + 2);
    } else {
      if (mistake != EditMistake::SizeNotAdded) cell.size += cells[at + 1].size;
      cells.erase(from(at + 1), mistake == EditMistake::AfterIsLost ? cells.end() : from(at + 2));
      if (mistake == EditMistake::AfterUnaware) misdirect(at + 1);
    }
    State state{{cells}, {{"stats: inactive_split_bytes", 0}, {"stats: inactive_split", 0}}};
    for (const Cell& each : cells) {
      if (each.kind != "free" || mistake == EditMistake::NotCounted) continue;
      state.counts["stats: inactive_split_bytes"] += static_cast<int64_t>(each.size);
      ++state.counts["stats: inactive_split"];
    }
    states.push_back(state);
  }
  return states;
}

// Up to the first that is wrong.
States learners_edits(const Edits& edits) {
  const States right = right_edits(edits, EditMistake::None);
  Player player(1024 * kMiB);
  cuda::Block* first = player.steps.take_from_driver(player.steps.pool(/*small=*/true), kMiB);
  const auto off_list = [&](cuda::Block* block) {
    if (player.steps.on_lists().count(block)) player.steps.take_off_list(block);
    return block;
  };
  States states;
  for (const auto& [at, size] : edits) {
    cuda::Block* block = first;
    for (size_t i = 0; i < at; ++i) block = block->after;
    if (size > 0) {
      player.steps.split(off_list(block), size);
    } else {
      off_list(block->after);
      player.steps.absorb_next(off_list(block));
    }
    State state = player.state();
    std::erase_if(state.counts, [](const auto& count) { return !count.first.starts_with("stats: inactive"); });
    states.push_back(state);
    if (!(state == right[states.size() - 1])) break;
  }
  return states;
}

std::string show(const Edit& edit) {
  return edit.size > 0 ? str("split(block ", edit.block, ", ", edit.size, ")")
                       : str("absorb_next(block ", edit.block, ")");
}

Exercise edits_exercise(const char* function, std::vector<Edits> inputs,
                        const std::vector<std::pair<const char*, EditMistake>>& mistakes) {
  Subject<Edits, States> subject;
  subject.function = name_of(function);
  subject.inputs = std::move(inputs);
  subject.learners = learners_edits;
  subject.describe = [](const Edits& edits) {
    std::string text = "in a segment of 2 MiB";
    for (const Edit& edit : edits) text += ", " + show(edit);
    return text;
  };
  subject.fault = [](const Edits& edits, const States& got) -> std::string {
    const std::string text = difference(got.back(), right_edits(edits, EditMistake::None)[got.size() - 1]);
    return text.empty() ? "" : str("first wrong element: after ", show(edits[got.size() - 1]), ", ", text);
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back({name, nullptr, [mistake = mistake](const Edits& edits, const States& got) {
                                  return explains(right_edits(edits, mistake), right_edits(edits, EditMistake::None),
                                                  got,
                                                  /*lists_only=*/mistake != EditMistake::NotCounted);
                                }});
  }
  return exercise(std::move(subject));
}

Exercise split_exercise() {
  return edits_exercise(
      "split", {{{0, 512}}, {{0, kMiB}, {0, 1024}}, {{0, 4096}, {1, 512}}, {{0, 4096}, {1, 8192}, {0, 512}, {2, 1024}}},
      {{"the block keeps its size: its end is in the other block, too", EditMistake::KeepsSize},
       {"a remainder is lost: the rest is on no list of free blocks", EditMistake::RestOnNoList},
       {"the rest is marked as in use: it is the lower part that is handed out", EditMistake::RestInUse},
       {"the rest is not counted: count_inactive_split", EditMistake::NotCounted},
       {"the block behind the rest still has the split one as its `before`", EditMistake::NextUnaware},
       {"the blocks behind are lost: the rest has no `after`", EditMistake::RestIsLast}});
}

Exercise absorb_exercise() {
  return edits_exercise(
      "absorb_next",
      {{{0, 512}, {0}}, {{0, 512}, {1, 1024}, {0}}, {{0, 4096}, {0, 512}, {1, 512}, {2, 1024}, {1}, {1}}},
      {{"the size is not added: the memory of the absorbed block is lost", EditMistake::SizeNotAdded},
       {"the blocks behind are lost: the block's `after` has to be what was behind the absorbed one",
        EditMistake::AfterIsLost},
       {"the block behind still has the absorbed one as its `before`", EditMistake::AfterUnaware}});
}

// ---- take_free ----

struct Choice {
  std::vector<size_t> free;  // sizes in MiB, each a segment
  size_t wanted;
  size_t max_split = 0;  // 0: no limit
  friend bool operator==(const Choice&, const Choice&) = default;
};
struct Chosen {
  std::optional<size_t> size;  // in MiB
  size_t left;                 // on the list
  friend bool operator==(const Chosen&, const Chosen&) = default;
};

Chosen learners_choice(const Choice& choice) {
  HostMemory memory(0);
  cuda::AllocatorConfig config;
  if (choice.max_split) config.max_split_size = choice.max_split * kMiB;
  cuda::DeviceAllocator allocator(0, memory, config);
  cuda::AllocatorSteps steps{allocator};
  cuda::StreamPool& pool = steps.pool(/*small=*/false);
  for (size_t size : choice.free) {
    cuda::Block* block = steps.new_block();
    block->size = size * kMiB;
    block->pool = &pool;
    pool.free.insert(block);
  }
  const cuda::Block* block = steps.take_free(pool, choice.wanted * kMiB);
  return {block ? std::optional(block->size / kMiB) : std::nullopt, pool.free.count()};
}

// `keeps`: whether max_split_size keeps large blocks from small requests; `wastes`: whether blocks may be much too
// large.
Chosen choose(const Choice& choice, bool keeps, bool wastes) {
  std::vector<size_t> sizes = choice.free;
  std::sort(sizes.begin(), sizes.end());
  const auto best = std::lower_bound(sizes.begin(), sizes.end(), choice.wanted);
  bool may = best != sizes.end();
  if (may && choice.max_split && choice.wanted < choice.max_split) may = !keeps || *best < choice.max_split;
  if (may && choice.max_split && choice.wanted >= choice.max_split) may = wastes || *best < choice.wanted + 20;
  return may ? Chosen{*best, sizes.size() - 1} : Chosen{std::nullopt, sizes.size()};
}

Exercise choice_exercise() {
  Subject<Choice, Chosen> subject;
  subject.function = name_of("take_free");
  subject.inputs = {{{}, 12},           {{20, 40, 30}, 25}, {{20}, 30},           {{100}, 12},     {{100}, 30, 64},
                    {{64, 40}, 50, 64}, {{100}, 90, 64},    {{110, 200}, 91, 64}, {{110}, 90, 64}, {{30}, 25, 64}};
  subject.learners = learners_choice;
  subject.describe = [](const Choice& choice) {
    std::string sizes;
    for (size_t size : choice.free) sizes += str(sizes.empty() ? "" : ", ", size);
    return str("take_free(", choice.wanted, " MiB) with free segments of (", sizes, ") MiB",
               choice.max_split ? str(" and a max_split_size of ", choice.max_split, " MiB") : "");
  };
  subject.same = std::equal_to<>();
  subject.fault = [](const Choice& choice, const Chosen& got) -> std::string {
    const Chosen right = choose(choice, true, false);
    const auto text = [](const Chosen& c) {
      return c.size ? str("the block of ", *c.size, " MiB") : std::string("null");
    };
    if (got.size != right.size) return str("it gives ", text(got), " and has to give ", text(right));
    return got.left == right.left ? "" : str(got.left, " blocks are left on the list, and have to be ", right.left);
  };
  subject.mistakes = {
      {"the block that is taken stays on its list: the next request gets it, too",
       [](const Choice& choice) {
         return Chosen{choose(choice, true, false).size, choice.free.size()};
       }},
      {"max_split_size is ignored: a block of that size and more is kept for requests of that size and more",
       [](const Choice& choice) { return choose(choice, false, true); }},
      {"max_split_size is ignored where the request is small", [](const Choice& c) { return choose(c, false, false); }},
      {"a request of max_split_size and more may take a block that is 20 MiB larger, or more: as it is not split, that "
       "is "
       "wasted",
       [](const Choice& choice) { return choose(choice, true, true); }},
  };
  return exercise(std::move(subject));
}

// ---- what is handed out and given back ----

// Whether a step left a block in use on a list: the wrong part of a split, or one that was not taken off.
bool hands_out_what_is_free(const Script& script, const States& states) {
  if (fault_of_states(script, states).empty()) return true;
  for (const Cells& segment : states.back().segments) {
    for (const Cell& cell : segment) {
      if (cell.kind.ends_with("and on a list of free blocks")) return true;
    }
  }
  return false;
}

Exercise hand_out_exercise() {
  Exercise result = script_exercise(
      "hand_out",
      {{{take(100)}},
       {{take(100), take(513), take(kMiB)}},
       {{take(3 * kMiB), take(15 * kMiB + kMiB / 2), take(11 * kMiB)}},
       {{take(4096), take(4096, 1), take(512)}}},
      {{"nothing is cut off: a request for 100 bytes takes the whole segment", BlockMistake::NothingCutOff},
       {"the block is not marked as in use: its neighbours would merge with it", BlockMistake::NotInUse},
       {"the statistics count what was asked for: allocated_bytes and active_bytes count the block's size",
        BlockMistake::CountsRequested},
       {"requested_bytes counts the rounded size: it has to count what was asked for",
        BlockMistake::RequestedIsRounded}});
  const auto known = result.mistake;
  const auto calls = std::vector<Script>{{{take(100)}}, {{take(100), take(513)}}, {{take(3 * kMiB), take(11 * kMiB)}}};
  result.mistake = [=]() -> KnownMistake {
    const KnownMistake mistake = known();
    if (!mistake.name.empty()) return mistake;
    const bool shows = std::all_of(calls.begin(), calls.end(), [](const Script& script) {
      return hands_out_what_is_free(script, learners_states(script));
    });
    return {shows ? "the wrong half of the split is handed out: it is on a list of free blocks" : "", ""};
  };
  return result;
}

Exercise give_back_exercise() {
  return script_exercise(
      "give_back",
      {{{take(512), give('a')}},
       {{take(512), take(1024), give('b'), give('a')}},
       {{take(512), take(1024), take(2048), take(4096), give('a'), give('c'), give('b'), give('d')}},
       {{take(512), take(1024), give('a'), take(1536), take(512), give('b'), give('c'), give('d')}},
       {{take(11 * kMiB), take(14 * kMiB), give('a'), take(10 * kMiB), give('b'), give('c')}}},
      {{"a freed block does not merge with its free neighbours: soon there are only small ones", BlockMistake::NoMerge},
       {"a freed block does not merge with the free neighbour behind it", BlockMistake::NoMergeAfter},
       {"a freed block does not merge with the free neighbour before it", BlockMistake::NoMergeBefore},
       {"the freed block is on no list: nobody gets it again", BlockMistake::OnNoList},
       {"active_bytes is not given back: it counts blocks that are in use or wait for another stream",
        BlockMistake::StaysActive},
       {"requested_bytes is not given back", BlockMistake::StaysRequested}});
}

}  // namespace

std::vector<Exercise> allocator_exercises() {
  std::vector<Exercise> all = {rounding_exercise(), fit_exercise(),      cut_exercise(),    split_exercise(),
                               choice_exercise(),   hand_out_exercise(), absorb_exercise(), give_back_exercise()};
  for (Exercise& exercise : allocator_use_exercises()) all.push_back(std::move(exercise));
  return all;
}

}  // namespace rush::labs
