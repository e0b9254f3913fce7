#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "nn/data/data.h"
#include "tests/data/batches.h"

namespace {

using namespace rush;
using namespace rush::data;
using namespace rush::data::samplers;
using rush::testing::Batches;

// Chunk i holds the numbers 100 i, 100 i + 1, ...; the chunk `bad` throws.
struct Reader : datasets::ChunkDataReader<int> {
  std::vector<int> sizes;
  size_t bad = 1000;
  std::shared_ptr<std::atomic<int>> read = std::make_shared<std::atomic<int>>(0);

  explicit Reader(std::vector<int> sizes) : sizes(std::move(sizes)) {}
  std::vector<int> read_chunk(size_t chunk) override {
    ++*read;
    if (chunk == bad) throw std::out_of_range("no chunk " + std::to_string(chunk));
    std::vector<int> numbers(static_cast<size_t>(sizes.at(chunk)));
    std::iota(numbers.begin(), numbers.end(), static_cast<int>(100 * chunk));
    return numbers;
  }
  size_t chunk_count() override { return sizes.size(); }
  void reset() override {}
};

using InOrder = datasets::ChunkDataset<Reader, SequentialSampler, SequentialSampler>;
using Shuffled = datasets::ChunkDataset<Reader, RandomSampler, RandomSampler>;

template <class Dataset>
Batches remaining_batches(Dataset& dataset) {
  Batches batches;
  while (auto batch = dataset.get_batch()) batches.push_back(std::move(*batch));
  return batches;
}

template <class Dataset>
Batches whole_epoch(Dataset& dataset) {
  dataset.reset();
  return remaining_batches(dataset);
}

std::vector<int> flat_sorted(const Batches& batches) {
  std::vector<int> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

const std::vector<int> kSizes = {3, 0, 5, 1, 4, 2};
const Batches kInOrder = {{0, 1, 2, 200}, {201, 202, 203, 204}, {300, 400, 401, 402}, {403, 500, 501}};

TEST_CASE("chunks in order are cut into batches across their borders, with any number of preloaders") {
  for (const size_t preloaders : {1, 2, 5}) {
    for (const size_t cache : {4, 5, 2048}) {
      for (const size_t together : {1, 2, 10}) {
        InOrder dataset(Reader(kSizes), SequentialSampler(0), SequentialSampler(0), {preloaders, 4, cache, together});
        for (int repeat = 0; repeat < 3; ++repeat) CHECK(whole_epoch(dataset) == kInOrder);
        CHECK(!dataset.get_batch());
        CHECK(!dataset.size());
      }
    }
  }
  InOrder none(Reader({}), SequentialSampler(0), SequentialSampler(0), {2, 4});
  CHECK(whole_epoch(none).empty());
  InOrder empty(Reader({0, 0}), SequentialSampler(0), SequentialSampler(0), {2, 4});
  CHECK(whole_epoch(empty).empty());
}

Shuffled shuffled(size_t preloaders, size_t together, size_t cache = 2048) {
  return {Reader(kSizes), RandomSampler(0, make_generator<CPUGeneratorImpl>(1)),
          RandomSampler(0, make_generator<CPUGeneratorImpl>(2)),
          datasets::ChunkDatasetOptions(preloaders, 4, cache, together)};
}

TEST_CASE("a shuffled epoch holds every example once, in an order that the seeds alone decide") {
  for (const size_t together : {1, 2, 6}) {
    CAPTURE(together);
    auto expected = shuffled(1, together);
    const Batches first = whole_epoch(expected), second = whole_epoch(expected);
    CHECK(flat_sorted(first) == flat_sorted(kInOrder));
    CHECK(first != second);
    for (const size_t preloaders : {1, 4}) {
      auto dataset = shuffled(preloaders, together, 4);
      CHECK(whole_epoch(dataset) == first);
      CHECK(whole_epoch(dataset) == second);
    }
  }
  // Only chunks that were drawn together mix.
  auto one = shuffled(2, 1);
  std::vector<int> chunks;
  for (const auto& batch : whole_epoch(one)) {
    for (const int n : batch) {
      if (chunks.empty() || chunks.back() != n / 100) chunks.push_back(n / 100);
    }
  }
  CHECK(chunks.size() == 5);
}

TEST_CASE("a chunk that fails is an exception in its place, and the epoch goes on") {
  Reader reader(kSizes);
  reader.bad = 2;
  InOrder dataset(reader, SequentialSampler(0), SequentialSampler(0), {3, 4});
  for (int repeat = 0; repeat < 2; ++repeat) {
    dataset.reset();
    CHECK_THROWS_WITH_AS(dataset.get_batch(),
                         "Caught exception in DataLoader worker thread. Original message: no chunk 2", WorkerException);
    CHECK(remaining_batches(dataset) == Batches{{0, 1, 2, 300}, {400, 401, 402, 403}, {500, 501}});
  }
}

TEST_CASE("no more is read than the cache and the preloaders hold; breaking off an epoch never hangs") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Reader reader(std::vector<int>(50, 4));
    InOrder dataset(reader, SequentialSampler(0), SequentialSampler(0), {2, 4, 8});
    dataset.reset();
    CHECK(dataset.get_batch());
    CHECK(*reader.read <= 1 + 2 + 2);  // taken, in the cache, in the preloaders' hands
    dataset.reset();
    CHECK(dataset.get_batch() == std::vector<int>{0, 1, 2, 3});
    if (repeat % 2) dataset.reset();
  }
}

TEST_CASE("the preprocessing policy sees what was drawn together") {
  datasets::ChunkDataset<Reader, SequentialSampler, SequentialSampler> dataset(
      Reader({3, 2}), SequentialSampler(0), SequentialSampler(0), {1, 4, 10, 2},
      [](std::vector<int>& examples) { std::reverse(examples.begin(), examples.end()); });
  CHECK(whole_epoch(dataset) == Batches{{101, 100, 2, 1}, {0}});
}

// Gives the index 0 for every example.
struct Stuck : Sampler<> {
  explicit Stuck(bool throws) : throws(throws) {}
  void reset(std::optional<size_t>) override {}
  std::optional<std::vector<size_t>> next(size_t count) override {
    if (throws) throw ValueError("stuck");
    return std::vector<size_t>(count, 0);
  }
  bool throws;
};

TEST_CASE("bad samplers, options and calls are typed errors") {
  datasets::ChunkDataset<Reader, SequentialSampler, Stuck> twice(Reader({2}), SequentialSampler(0), Stuck(false),
                                                                 {1, 2});
  twice.reset();
  CHECK_THROWS_WITH_AS(twice.get_batch(),
                       "Caught exception in DataLoader worker thread. Original message: ChunkDataset: the example "
                       "sampler gave 0 twice",
                       WorkerException);
  CHECK_THROWS_AS(twice.state_dict(), NotImplementedError);
  datasets::ChunkDataset<Reader, Stuck, SequentialSampler> stuck(Reader({2}), Stuck(true), SequentialSampler(0),
                                                                 {3, 2});
  stuck.reset();
  CHECK_THROWS_WITH_AS(stuck.get_batch(), "Caught exception in DataLoader worker thread. Original message: stuck",
                       WorkerException);
  CHECK(!stuck.get_batch());

  InOrder dataset(Reader({2}), SequentialSampler(0), SequentialSampler(0), {1, 2});
  CHECK_THROWS_WITH_AS(dataset.get_batch(), "ChunkDataset: call reset() before get_batch()", Error);
  CHECK_THROWS_AS(dataset.get_batch(3), ValueError);
  const size_t bad[][4] = {{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 2, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}};
  for (const auto& b : bad) CHECK_THROWS_AS(datasets::ChunkDatasetOptions(b[0], b[1], b[2], b[3]), ValueError);
}

TEST_CASE("a loader goes through a chunk dataset") {
  for (const size_t workers : {0, 1, 3}) {
    CAPTURE(workers);
    auto dataset = datasets::make_shared_dataset<InOrder>(Reader(kSizes), SequentialSampler(0), SequentialSampler(0),
                                                          datasets::ChunkDatasetOptions(2, 4));
    const auto loader = make_data_loader(dataset.map(transforms::Lambda<int>([](int n) { return n + 1; })),
                                         DataLoaderOptions(4).workers(workers));
    for (int repeat = 0; repeat < 2; ++repeat) {
      Batches batches;
      for (auto& batch : *loader) batches.push_back(batch);
      CHECK(batches.size() == 4);
      for (int& n : batches[0]) --n;
      if (workers < 2) CHECK(batches[0] == kInOrder[0]);
    }
  }
}

TEST_CASE("an epoch of chunks resumes with the example after the last batch, and so do those after it") {
  for (const size_t together : {1, 3}) {
    for (size_t taken = 0; taken <= 5; ++taken) {
      CAPTURE(together);
      CAPTURE(taken);
      auto dataset = shuffled(3, together, 8);
      dataset.reset();
      for (size_t i = 0; i < taken; ++i) dataset.get_batch();
      const StateDict state = dataset.state_dict();

      auto other = shuffled(2, together);
      if (taken % 2) whole_epoch(other);
      other.load_state_dict(state);
      const StateDict again = other.state_dict();  // before anything was taken
      const Batches expected = remaining_batches(dataset), next = whole_epoch(dataset);
      CHECK(remaining_batches(other) == expected);
      CHECK(whole_epoch(other) == next);
      other.load_state_dict(again);
      CHECK(remaining_batches(other) == expected);

      StateDict bad = state;
      bad.erase("used");
      bad["chunk_sampler.index"].fill_(7);
      other.load_state_dict(again);
      if (!expected.empty()) CHECK(other.get_batch() == expected[0]);
      CHECK_THROWS_AS(other.load_state_dict(bad), ValueError);
      CHECK(remaining_batches(other).size() == (expected.empty() ? 0 : expected.size() - 1));
    }
  }
  auto fresh = shuffled(1, 1), other = shuffled(1, 1);
  other.load_state_dict(fresh.state_dict());
  CHECK(whole_epoch(other) == whole_epoch(fresh));
}

}  // namespace
