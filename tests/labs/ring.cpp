// Lab 17, the ring: chunks, and collectives between ranks that are threads on the emulated wire. What has to come is
// known of each element; common mistakes are known as other schedules of the same steps.
#include "tests/labs/solutions/ring.h"

#include <cmath>
#include <cstdio>
#include <functional>

#include "tests/labs/ring_exercise.h"

namespace rush::labs {
namespace {

// ---- chunks ----

struct Division {
  int64_t count;
  int size;
};
using Chunks = std::vector<Chunk>;

enum class ChunkMistake { None, RestLost, LastHasRest, RoundedUp, EqualBegins, LastAreLonger };

// The elements are dealt out one by one.
Chunks chunks_of(const Division& division, ChunkMistake mistake = ChunkMistake::None) {
  const int64_t size = division.size, least = division.count / size, rest = division.count % size;
  std::vector<int64_t> counts(static_cast<size_t>(size), least);
  for (int64_t i = 0; i < rest; ++i) {
    switch (mistake) {
      case ChunkMistake::RestLost: break;
      case ChunkMistake::LastHasRest: ++counts.back(); break;
      case ChunkMistake::LastAreLonger: ++counts[static_cast<size_t>(size - 1 - i)]; break;
      default: ++counts[static_cast<size_t>(i)];
    }
  }
  Chunks chunks;
  int64_t begin = 0;
  for (int64_t i = 0; i < size; ++i) {
    int64_t count = counts[static_cast<size_t>(i)];
    if (mistake == ChunkMistake::RoundedUp) count = std::min(least + (rest > 0 ? 1 : 0), division.count - begin);
    chunks.push_back({mistake == ChunkMistake::EqualBegins ? i * least : begin, count});
    begin += count;
  }
  return chunks;
}

bool same_chunks(const Chunks& a, const Chunks& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Chunk& x, const Chunk& y) { return x.begin == y.begin && x.count == y.count; });
}

Exercise chunk_exercise() {
  Subject<Division, Chunks> subject;
  subject.function = "rush::labs::chunk_of";
  subject.inputs = {{12, 4}, {7, 3}, {11, 4}, {3, 5}, {0, 2}, {9, 1}};
  subject.learners = [](const Division& division) {
    Chunks chunks;
    for (int i = 0; i < division.size; ++i) chunks.push_back(chunk_of(division.count, division.size, i));
    return chunks;
  };
  subject.describe = [](const Division& division) {
    return str("chunk_of(", division.count, ", ", division.size, ", index), with each index from 0 to ",
               division.size - 1);
  };
  subject.same = same_chunks;
  subject.fault = [](const Division& division, const Chunks& chunks) -> std::string {
    const Chunks right = chunks_of(division);
    for (size_t i = 0; i < right.size(); ++i) {
      if (same_chunks({chunks[i]}, {right[i]})) continue;
      return str("first wrong element: chunk ", i, " begins at ", chunks[i].begin, " and has ", chunks[i].count,
                 " elements; it has to begin at ", right[i].begin, " and have ", right[i].count);
    }
    return {};
  };
  const std::pair<const char*, ChunkMistake> mistakes[] = {
      {"the last count % size elements are in no chunk: their sums would be lost", ChunkMistake::RestLost},
      {"the last chunk has all that is left: a step takes as long as its longest chunk, so they may differ by one",
       ChunkMistake::LastHasRest},
      {"the chunks are rounded up: the last ones are then shorter by more than one element", ChunkMistake::RoundedUp},
      {"the chunks overlap: those after a longer one begin later", ChunkMistake::EqualBegins},
      {"the last chunks are the longer ones: it has to be the first", ChunkMistake::LastAreLonger},
  };
  for (const auto& [name, mistake] : mistakes) {
    subject.mistakes.push_back(
        {name, [mistake = mistake](const Division& division) { return chunks_of(division, mistake); }});
  }
  return exercise(std::move(subject));
}

// ---- arrays ----

struct RingInput {
  int ranks;
  int64_t count;
};

// Sums of these tell whose numbers are in them, each up to seven times, and are exact in float32.
float factor(int64_t element) { return static_cast<float>(1 + element % 7); }
float share(int rank, int64_t element) { return std::ldexp(factor(element), 3 * rank); }

float total(int ranks, int64_t element) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += share(rank, element);
  return sum;
}

// The index of the element's chunk.
int chunk_with(const RingInput& input, int64_t element) {
  const Chunks chunks = chunks_of({input.count, input.ranks});
  int index = 0;
  while (element >= chunks[static_cast<size_t>(index)].begin + chunks[static_cast<size_t>(index)].count) ++index;
  return index;
}

using Element = std::function<float(int rank, int64_t element)>;

Arrays arrays_of(const RingInput& input, const Element& element) {
  Arrays arrays(static_cast<size_t>(input.ranks));
  for (int rank = 0; rank < input.ranks; ++rank) {
    for (int64_t i = 0; i < input.count; ++i) arrays[static_cast<size_t>(rank)].push_back(element(rank, i));
  }
  return arrays;
}

Arrays shares(const RingInput& input) { return arrays_of(input, share); }

// Each rank has its own chunk; the others hold -1.
Arrays own_chunks(const RingInput& input) {
  return arrays_of(input, [&](int rank, int64_t i) { return chunk_with(input, i) == rank ? share(rank, i) : -1.0F; });
}

// " (ranks 0, 0, 2)" for a sum of shares, each at most seven times; empty for other numbers.
std::string addends(float sum, int64_t element) {
  const float code = sum / factor(element);
  if (!(code >= 1 && code < 1 << 24 && code == std::floor(code))) return {};
  std::string ranks;
  for (int digits = static_cast<int>(code), rank = 0; digits > 0; digits /= 8, ++rank) {
    for (int i = 0; i < digits % 8; ++i) ranks += str(ranks.empty() ? "" : ", ", rank);
  }
  return str(ranks.size() > 1 ? " (ranks " : " (rank ", ranks, ")");
}

// ---- collectives ----

using Collective = void (*)(Wire&, float*, int64_t);

struct Contract {
  const char* function;
  Collective learners;
  Arrays (*before)(const RingInput&);
  float (*after)(const RingInput&, int rank, int64_t element);
  bool own_chunk_alone;                    // whether a rank's other chunks may hold anything
  int64_t (*most_sent)(const RingInput&);  // by a rank
  int64_t (*most_time)(const RingInput&);
};

RingOutput learners_arrays(const Contract& contract, const RingInput& input) {
  RingOutput output{contract.before(input), {}};
  output.run = run_ranks(input.ranks, [&](Wire& wire) {
    contract.learners(wire, output.data[static_cast<size_t>(wire.rank())].data(), input.count);
  });
  return output;
}

std::string fault_of_data(const Contract& contract, const RingInput& input, const Arrays& data) {
  for (int rank = 0; rank < input.ranks; ++rank) {
    for (int64_t i = 0; i < input.count; ++i) {
      const float got = data[static_cast<size_t>(rank)][static_cast<size_t>(i)];
      const float right = contract.after(input, rank, i);
      const int chunk = chunk_with(input, i);
      if (got == right || (contract.own_chunk_alone && chunk != rank)) continue;
      return str("first wrong element: on rank ", rank, " element ", i, ", of chunk ", chunk, ", is ", got,
                 addends(got, i), " and has to be ", right, addends(right, i));
    }
  }
  return {};
}

std::string fault_of_traffic(const Contract& contract, const RingInput& input, const WireRun& run) {
  if (!run.neighbours_only) return "a message does not go from a rank to the next one";
  for (size_t rank = 0; rank < run.sent.size(); ++rank) {
    if (run.sent[rank] > contract.most_sent(input)) {
      return str("the elements are right; rank ", rank, " sends ", run.sent[rank], " numbers, and ",
                 contract.most_sent(input), " are enough");
    }
  }
  if (run.time <= contract.most_time(input)) return {};
  return str("the elements are right; the messages take ", run.time, " units of time, one for each number, and ",
             contract.most_time(input), " are enough");
}

std::string fault_of(const Contract& contract, const RingInput& input, const RingOutput& output) {
  if (!output.run.fault.empty()) return output.run.fault;
  const std::string fault = fault_of_data(contract, input, output.data);
  return fault.empty() ? fault_of_traffic(contract, input, output.run) : fault;
}

bool right_data(const Contract& contract, const RingInput& input, const RingOutput& output) {
  return output.run.fault.empty() && fault_of_data(contract, input, output.data).empty();
}

using RingSubject = Subject<RingInput, RingOutput>;
const std::vector<RingInput> kRings = {{1, 5}, {2, 6}, {4, 12}, {3, 7}, {5, 3}, {4, 0}, {8, 83}, {7, 1}};

RingSubject ring_subject(const Contract& contract) {
  RingSubject subject;
  subject.function = contract.function;
  subject.inputs = kRings;
  subject.learners = [=](const RingInput& input) { return learners_arrays(contract, input); };
  subject.describe = [=](const RingInput& input) {
    return str("of ", input.count, " elements on each of ", input.ranks, input.ranks == 1 ? " rank" : " ranks");
  };
  subject.same = [=](const RingOutput& got, const RingOutput& model) {
    if (!got.run.fault.empty()) return false;
    for (size_t rank = 0; rank < got.data.size(); ++rank) {
      const Chunk own = contract.own_chunk_alone
                            ? chunks_of({std::ssize(got.data[rank]), static_cast<int>(got.data.size())})[rank]
                            : Chunk{0, std::ssize(got.data[rank])};
      const auto begin = got.data[rank].begin() + own.begin;
      if (!std::equal(begin, begin + own.count, model.data[rank].begin() + own.begin)) return false;
    }
    return true;
  };
  subject.fault = [=](const RingInput& input, const RingOutput& output) { return fault_of(contract, input, output); };
  return subject;
}

// Where there is one rank nothing has to be sent, so that a mistake need not show.
void add_shown(RingSubject& subject, const char* name,
               const std::function<bool(const RingInput&, const RingOutput&)>& shows) {
  const auto fault = subject.fault;
  subject.mistakes.push_back({name, nullptr, [=](const RingInput& input, const RingOutput& output) {
                                return (input.ranks == 1 && fault(input, output).empty()) || shows(input, output);
                              }});
}

void add_deadlocks(RingSubject& subject) {
  add_shown(
      subject, "all ranks send first: a send returns when the other rank receives, and none of them ever does",
      [](const RingInput&, const RingOutput& output) { return all_stuck_in(output.run, RankState::Kind::Sends); });
  add_shown(subject, "all ranks receive first: nobody sends", [](const RingInput&, const RingOutput& output) {
    return all_stuck_in(output.run, RankState::Kind::Receives);
  });
}

// ---- schedules ----

// In step s, rank r sends chunk r + first - s to the next rank, which adds or copies it.
struct Schedule {
  int steps;
  int first;
  bool adds;
  bool moves = true;  // otherwise all steps are as the first
};

void follow(const Schedule& schedule, const RingInput& input, Arrays& arrays) {
  const Chunks chunks = chunks_of({input.count, input.ranks});
  for (int step = 0; step < schedule.steps; ++step) {
    const Arrays before = arrays;
    for (int rank = 0; rank < input.ranks; ++rank) {
      const int index = rank + schedule.first - (schedule.moves ? step : 0) + 2 * input.ranks;
      const Chunk& chunk = chunks[static_cast<size_t>(index % input.ranks)];
      std::vector<float>& target = arrays[static_cast<size_t>((rank + 1) % input.ranks)];
      for (int64_t i = chunk.begin; i < chunk.begin + chunk.count; ++i) {
        const auto at = static_cast<size_t>(i);
        target[at] = before[static_cast<size_t>(rank)][at] + (schedule.adds ? target[at] : 0);
      }
    }
  }
}

// What a learner's schedule gives, by the number of ranks.
void add_schedule(RingSubject& subject, const Contract& contract, const char* name, Schedule (*schedule)(int ranks)) {
  subject.mistakes.push_back({name, [=](const RingInput& input) {
                                RingOutput output{contract.before(input), {}};
                                if (input.ranks > 1) follow(schedule(input.ranks), input, output.data);
                                return output;
                              }});
}

// ---- the four collectives ----

int64_t longest_chunk(const RingInput& input) { return (input.count + input.ranks - 1) / input.ranks; }
int64_t one_phase(const RingInput& input) { return (input.ranks - 1) * longest_chunk(input); }

// In pairs a step takes two messages, and three where one rank is left over.
int64_t time_of_phase(const RingInput& input) { return 3 * one_phase(input); }

const Contract kReduceScatter = {"rush::labs::ring_reduce_scatter",
                                 ring_reduce_scatter,
                                 shares,
                                 [](const RingInput& input, int, int64_t i) { return total(input.ranks, i); },
                                 true,
                                 one_phase,
                                 time_of_phase};
const Contract kAllGather = {"rush::labs::ring_all_gather",
                             ring_all_gather,
                             own_chunks,
                             [](const RingInput& input, int, int64_t i) { return share(chunk_with(input, i), i); },
                             false,
                             one_phase,
                             time_of_phase};
const Contract kAllReduce = {"rush::labs::ring_all_reduce",
                             ring_all_reduce,
                             shares,
                             [](const RingInput& input, int, int64_t i) { return total(input.ranks, i); },
                             false,
                             [](const RingInput& input) { return 2 * one_phase(input); },
                             [](const RingInput& input) { return 2 * time_of_phase(input); }};
const Contract kBroadcast = {"rush::labs::ring_broadcast",
                             ring_broadcast,
                             shares,
                             [](const RingInput&, int, int64_t i) { return share(0, i); },
                             false,
                             [](const RingInput& input) { return input.count; },
                             [](const RingInput& input) { return (input.ranks - 1) * input.count; }};

void add_serial(RingSubject& subject, const Contract& contract) {
  add_shown(subject,
            "the messages of a step wait for each other, from rank to rank: they take as long as all one after another",
            [=](const RingInput& input, const RingOutput& output) {
              const bool too_long = output.run.time > contract.most_time(input);
              return right_data(contract, input, output) && (input.ranks != 8 || too_long);
            });
}

// Whether each rank has the sums of the chunk behind its own.
bool has_next_chunk(const RingInput& input, const RingOutput& output) {
  if (!output.run.fault.empty() || (input.count > 0 && right_data(kReduceScatter, input, output))) return false;
  for (int rank = 0; rank < input.ranks; ++rank) {
    const std::vector<float>& data = output.data[static_cast<size_t>(rank)];
    for (int64_t i = 0; i < input.count; ++i) {
      const bool is_next = chunk_with(input, i) == (rank + 1) % input.ranks;
      if (is_next && data[static_cast<size_t>(i)] != total(input.ranks, i)) return false;
    }
  }
  return true;
}

Exercise reduce_scatter_exercise() {
  RingSubject subject = ring_subject(kReduceScatter);
  add_deadlocks(subject);
  add_serial(subject, kReduceScatter);
  add_shown(subject, "rank r ends with the sum of chunk r + 1: it has to begin with chunk r - 1 to end with r",
            has_next_chunk);
  const auto add = [&](const char* name, Schedule (*schedule)(int)) {
    add_schedule(subject, kReduceScatter, name, schedule);
  };
  add("what comes is copied over this rank's numbers: it has to be added to them", [](int ranks) {
    return Schedule{ranks - 1, -1, false};
  });
  add("the same chunk is sent in each step: it has to be the one that came in the step before", [](int ranks) {
    return Schedule{ranks - 1, -1, true, false};
  });
  add("sums are added twice: after ranks - 1 steps each chunk has been at all ranks", [](int ranks) {
    return Schedule{ranks, -1, true};
  });
  add("a step is missing: a chunk has to visit all ranks, in ranks - 1 steps", [](int ranks) {
    return Schedule{ranks - 2, -1, true};
  });
  return exercise(std::move(subject));
}

Exercise all_gather_exercise() {
  RingSubject subject = ring_subject(kAllGather);
  add_deadlocks(subject);
  add_serial(subject, kAllGather);
  const auto add = [&](const char* name, Schedule (*schedule)(int)) {
    add_schedule(subject, kAllGather, name, schedule);
  };
  add("the first chunk that a rank sends is not its own: what rank r has is chunk r", [](int ranks) {
    return Schedule{ranks - 1, 1, false};
  });
  add("what comes is added: the sums are complete, and have to be copied", [](int ranks) {
    return Schedule{ranks - 1, 0, true};
  });
  add("the same chunk is sent in each step: it has to be the one that came in the step before", [](int ranks) {
    return Schedule{ranks - 1, 0, false, false};
  });
  add("a step is missing: each rank lacks ranks - 1 chunks", [](int ranks) { return Schedule{ranks - 2, 0, false}; });
  return exercise(std::move(subject));
}

// Whether each rank has the sums of its chunk, and another one is wrong.
bool lacks_other_chunks(const RingInput& input, const RingOutput& output) {
  return output.run.fault.empty() && fault_of_data(kReduceScatter, input, output.data).empty() &&
         (input.count == 0 || !right_data(kAllReduce, input, output));
}

// What an all-reduce costs, beside the least that any needs; docs/labs/ring.md says why it is that.
std::string show_cost() {
  const RingInput input{8, 80000};
  const RingOutput output = learners_arrays(kAllReduce, input);
  if (std::string fault = fault_of(kAllReduce, input, output); !fault.empty()) return fault;
  const int64_t sent = *std::max_element(output.run.sent.begin(), output.run.sent.end());
  const double ideal = 2.0 * static_cast<double>(input.ranks - 1) / input.ranks * static_cast<double>(input.count);
  std::printf(
      "         80000 numbers on 8 ranks: each sends %lld bytes, %.0f %% of 2 (N - 1) / N times its own, in %lld "
      "messages;\n         they take %.2f times as long as if all ranks sent and received at the same time\n",
      static_cast<long long>(sent * 4), 100 * static_cast<double>(sent) / ideal,
      static_cast<long long>(output.run.messages[0]), static_cast<double>(output.run.time) / ideal);
  return {};
}

Exercise all_reduce_exercise() {
  RingSubject subject = ring_subject(kAllReduce);
  add_deadlocks(subject);
  add_shown(subject, "the all-gather is missing: rank r has the sums of chunk r alone", lacks_other_chunks);
  subject.mistakes.push_back({"the all-gather comes first: there are no sums yet", [](const RingInput& input) {
                                RingOutput output{shares(input), {}};
                                follow({input.ranks - 1, 0, false}, input, output.data);
                                follow({input.ranks - 1, -1, true}, input, output.data);
                                return output;
                              }});
  add_shown(subject,
            "whole arrays go around the ring: each rank sends ranks - 1 of them, and chunks need less than two",
            [](const RingInput& input, const RingOutput& output) {
              const std::vector<int64_t>& sent = output.run.sent;
              return right_data(kAllReduce, input, output) && sent[0] == (input.ranks - 1) * input.count &&
                     sent[1] == sent[0];
            });
  add_shown(subject, "rank 0 adds up all arrays and sends the sum to each: it sends ranks - 1 times what the others do",
            [](const RingInput& input, const RingOutput& output) {
              const std::vector<int64_t>& sent = output.run.sent;
              return right_data(kAllReduce, input, output) && sent[0] == (input.ranks - 1) * input.count &&
                     sent[1] == input.count;
            });
  Exercise result = exercise(std::move(subject));
  result.calls.push_back({"of 80000 elements on each of 8 ranks", show_cost});
  return result;
}

Exercise broadcast_exercise() {
  RingSubject subject = ring_subject(kBroadcast);
  add_shown(subject, "the last rank sends to rank 0, too, which has the numbers and does not receive them",
            [](const RingInput& input, const RingOutput& output) {
              if (input.ranks == 1) return output.run.fault.find("no connection to rank 0") != std::string::npos;
              return !output.run.stuck.empty() && output.run.stuck.back().kind == RankState::Kind::Sends;
            });
  add_shown(
      subject, "rank 0 receives as well: it has the numbers, and begins",
      [](const RingInput&, const RingOutput& output) { return all_stuck_in(output.run, RankState::Kind::Receives); });
  add_shown(subject,
            "rank 0 sends to each of the others: it sends ranks - 1 times the array, and each rank can pass it on",
            [](const RingInput& input, const RingOutput& output) {
              return right_data(kBroadcast, input, output) && output.run.sent[0] == (input.ranks - 1) * input.count;
            });
  subject.mistakes.push_back({"nothing is sent", [](const RingInput& input) { return RingOutput{shares(input), {}}; }});
  return exercise(std::move(subject));
}

}  // namespace

std::vector<Exercise> ring_exercises() {
  std::vector<Exercise> exercises = {chunk_exercise(), reduce_scatter_exercise(), all_gather_exercise(),
                                     all_reduce_exercise(), broadcast_exercise()};
  for (Exercise& each : data_parallel_exercises()) exercises.push_back(std::move(each));
  return exercises;
}

}  // namespace rush::labs
