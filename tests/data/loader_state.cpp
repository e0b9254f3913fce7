#include <doctest/doctest.h>

#include <functional>

#include "core/ops/factory/factories.h"
#include "nn/data/data.h"
#include "tests/data/batches.h"

namespace {

using namespace rush;
using namespace rush::data;
using rush::testing::epoch;
using LongBatches = std::vector<std::vector<int64_t>>;

// An example and a number drawn from its batch's stream.
struct NumbersWithDraws : datasets::Dataset<NumbersWithDraws, int64_t> {
  int64_t get(size_t index) override {
    return static_cast<int64_t>(index) * 1000 + static_cast<int64_t>(data::detail::draw_seed(batch_generator()) % 1000);
  }
  std::optional<size_t> size() const override { return 23; }
};

struct CounterTo23 : datasets::IterableDataset<CounterTo23, int64_t> {
  std::optional<int64_t> next() override { return position == 23 ? std::nullopt : std::optional<int64_t>(position++); }
  void reset() override { position = 0; }
  void visit(StateFields& fields) override { fields("position", position); }
  int64_t position = 0;
};

auto loader_of(size_t workers, uint64_t seed, bool ordered = true, bool drop_last = false) {
  const auto generator = make_generator<CPUGeneratorImpl>(seed);
  return make_data_loader(
      NumbersWithDraws(), samplers::RandomSampler(23, generator),
      DataLoaderOptions(4).workers(workers).generator(generator).enforce_ordering(ordered).drop_last(drop_last));
}

// What is left of an epoch after `taken` batches, and its state there.
template <class Loader>
std::pair<LongBatches, StateDict> split(Loader& loader, size_t taken) {
  LongBatches rest;
  StateDict state = loader.state_dict();
  size_t count = 0;
  for (auto& batch : loader) {
    if (++count <= taken) {
      state = loader.state_dict();
    } else {
      rest.push_back(batch);
    }
  }
  return {rest, state};
}

TEST_CASE("a loader resumes after the batches that were handed out, with any number of workers") {
  for (const size_t workers : {0, 1, 3}) {
    for (const bool drop_last : {false, true}) {
      for (size_t taken = 1; taken <= (drop_last ? 5 : 6); ++taken) {
        CAPTURE(workers);
        CAPTURE(taken);
        const auto loader = loader_of(workers, 1, true, drop_last);
        const auto [rest, state] = split(*loader, taken);
        const LongBatches next = epoch(*loader);
        for (const size_t other_workers : {0, 2}) {
          const auto other = loader_of(other_workers, 99, true, drop_last);
          if (taken % 2) other->begin();  // breaks off an epoch of its own
          other->load_state_dict(state);
          CHECK(epoch(*other) == rest);
          CHECK(epoch(*other) == next);
        }
      }
    }
  }
}

TEST_CASE("a position that was loaded can be saved again before a batch is taken") {
  const auto loader = loader_of(3, 1);
  const auto [rest, state] = split(*loader, 2);
  const auto other = loader_of(1, 2), third = loader_of(0, 3);
  other->load_state_dict(state);
  auto batch = other->begin();
  CHECK(*batch == rest[0]);
  const StateDict later = other->state_dict();
  third->load_state_dict(later);
  CHECK(epoch(*third) == LongBatches(rest.begin() + 1, rest.end()));
  third->load_state_dict(state);
  third->load_state_dict(third->state_dict());
  CHECK(epoch(*third) == rest);
}

TEST_CASE("batches that were handed out too early are loaded again") {
  for (const size_t workers : {0, 2}) {
    for (size_t taken = 2; taken <= 6; ++taken) {
      for (size_t unused = 0; unused <= taken; ++unused) {
        CAPTURE(taken);
        CAPTURE(unused);
        const auto loader = loader_of(workers, 1), other = loader_of(0, 99);
        LongBatches all;
        StateDict state;
        for (auto& batch : *loader) {
          all.push_back(batch);
          if (all.size() == taken) state = loader->state_dict(unused);
        }
        // After the last batch the epoch counts as over only if it was used.
        if (taken == 6) state = loader->state_dict(unused);
        other->load_state_dict(state);
        const LongBatches rest(all.begin() + static_cast<std::ptrdiff_t>(taken - unused), all.end());
        if (!rest.empty()) CHECK(epoch(*other) == rest);
        CHECK(epoch(*other) == epoch(*loader));
      }
    }
  }
  const auto loader = loader_of(0, 1);
  CHECK_THROWS_AS(loader->state_dict(1), ValueError);
}

TEST_CASE("between epochs, the state is that of the sampler") {
  const auto loader = loader_of(2, 1), other = loader_of(0, 2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    other->load_state_dict(loader->state_dict());  // before any, and between two
    CHECK(epoch(*other) == epoch(*loader));
  }
}

TEST_CASE("out of order, what was not handed out is what is loaded again") {
  const auto loader = loader_of(3, 1, /*ordered=*/false);
  const auto [rest, state] = split(*loader, 3);
  const auto other = loader_of(2, 9, /*ordered=*/false);
  other->load_state_dict(state);
  const auto sorted = [](LongBatches batches) {
    std::sort(batches.begin(), batches.end());
    return batches;
  };
  CHECK(sorted(epoch(*other)) == sorted(rest));
}

TEST_CASE("stream samplers and stateful datasets resume too") {
  struct Stream : datasets::StreamDataset<Stream, std::vector<int64_t>> {
    std::vector<int64_t> get_batch(size_t size) override {
      return {static_cast<int64_t>(size), static_cast<int64_t>(data::detail::draw_seed(batch_generator()) % 1000)};
    }
    std::optional<size_t> size() const override { return std::nullopt; }
  };
  const auto stream = [](size_t workers) {
    return make_data_loader(Stream(), samplers::StreamSampler(10),
                            DataLoaderOptions(3).workers(workers).generator(make_generator<CPUGeneratorImpl>(workers)));
  };
  const auto first = stream(2), second = stream(1);
  const auto [rest, state] = split(*first, 2);
  second->load_state_dict(state);
  CHECK(epoch(*second) == rest);
  CHECK(rest.size() == 2);

  const auto counter = [](size_t workers) {
    return make_data_loader(CounterTo23(), DataLoaderOptions(5).workers(workers));
  };
  const auto here = counter(0), there = counter(2);
  const auto [numbers, place] = split(*here, 2);
  CHECK(numbers[0][0] == 10);
  const auto other = counter(1);
  other->load_state_dict(place);
  CHECK(epoch(*other) == numbers);
  auto batch = there->begin();
  CHECK_THROWS_AS(there->state_dict(), Error);  // workers have read ahead
  while (batch != there->end()) ++batch;
  other->load_state_dict(there->state_dict());
  CHECK(epoch(*other).size() == 5);
}

TEST_CASE("a dict that is not a loader's is refused in one line, and the epoch goes on") {
  const std::string who = "DataLoader::load_state_dict: the state dict does not fit; ";
  const auto loader = loader_of(2, 1), twin = loader_of(0, 1);
  auto batch = loader->begin(), twins = twin->begin();
  const StateDict good = loader->state_dict();
  const struct {
    std::function<void(StateDict&)> spoil;
    std::string message;
  } kCases[] = {
      {[](StateDict& d) { d["pending.0.indices"].fill_(23); }, "wrong: pending.0.indices are not those of examples"},
      {[](StateDict& d) { d["pending.0.indices"].fill_(-1); }, "wrong: pending.0.indices are not those of examples"},
      {[](StateDict& d) { d["pending.1.indices"] = empty({0}, kInt64); },
       "wrong: pending.1.indices are not those of examples"},
      {[](StateDict& d) { d["pending.0.number"].fill_(-4); },
       "wrong: pending.0.number is out of range: -4, expected at most 9007199254740992"},
      {[](StateDict& d) { d["sampler.size"].fill_(24); }, "wrong: sampler.size is 24 instead of 23"},
      {[](StateDict& d) { d.erase("epoch_seed"); }, "missing: epoch_seed"},
      {[](StateDict& d) { d.insert("dataset.position", scalar_tensor(1)); }, "unexpected: dataset.position"},
  };
  for (const auto& c : kCases) {
    StateDict state = loader->state_dict();
    c.spoil(state);
    CHECK_THROWS_WITH_AS(loader->load_state_dict(state), (who + c.message).c_str(), ValueError);
  }
  CHECK_THROWS_AS(loader->load_state_dict(StateDict()), ValueError);
  while (twins != twin->end()) {
    CHECK(*batch == *twins);
    ++batch;
    ++twins;
  }
  CHECK(batch == loader->end());
  CHECK(epoch(*loader) == epoch(*twin));
}

}  // namespace
