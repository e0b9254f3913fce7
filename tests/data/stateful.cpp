#include <doctest/doctest.h>

#include <atomic>
#include <set>

#include "core/ops/factory/factories.h"
#include "nn/data/data.h"
#include "tests/data/batches.h"

namespace {

using namespace rush;
using namespace rush::data;
using rush::testing::Batches;
using rush::testing::epoch;
// Counts up; the example `bad` throws once.
struct Counter : datasets::IterableDataset<Counter, int> {
  explicit Counter(int count, int bad = -1) : count(count), bad(bad) {}
  std::optional<int> next() override {
    if (position == count) return std::nullopt;
    if (position == bad) {
      ++position;
      throw ValueError("bad number " + std::to_string(bad));
    }
    return static_cast<int>(position++);
  }
  void reset() override {
    position = 0;
    ++resets;
  }
  void visit(StateFields& fields) override { fields("position", position); }

  int64_t position = 0;
  int count, bad, resets = 0;
};

TEST_CASE("an iterable dataset is read to its end, by one thread in order and by several completely") {
  for (const size_t workers : {0, 1, 4}) {
    for (const bool ordered : {true, false}) {
      CAPTURE(workers);
      const auto options = DataLoaderOptions(3).workers(workers).enforce_ordering(ordered);
      const auto loader = make_data_loader(Counter(8), options);
      static_assert(std::is_same_v<decltype(loader), const std::unique_ptr<StatefulDataLoader<Counter>>>);
      for (int repeat = 1; repeat <= 3; ++repeat) {
        Batches batches = epoch(*loader);
        CHECK(loader->dataset().resets == repeat);
        if (workers > 1) std::sort(batches.begin(), batches.end());  // by their first examples
        CHECK(batches == Batches{{0, 1, 2}, {3, 4, 5}, {6, 7}});
      }
    }
  }
  CHECK(epoch(*make_data_loader(Counter(0), DataLoaderOptions(3).workers(2))).empty());
  CHECK_THROWS_WITH_AS(make_data_loader(Counter(8), DataLoaderOptions(3).drop_last(true)),
                       doctest::Contains("DataLoader: drop_last is not known to a dataset that decides itself"),
                       ValueError);
}

TEST_CASE("a new epoch of a stateful dataset starts from its beginning, though workers are in the last") {
  const auto loader = make_data_loader(Counter(50), DataLoaderOptions(1).workers(3));
  for (int repeat = 0; repeat < 20; ++repeat) CHECK((*loader->begin()).size() == 1);
  CHECK(epoch(*loader).size() == 50);
}

TEST_CASE("stateful datasets carry exceptions too") {
  const auto here = make_data_loader(Counter(6, 2), DataLoaderOptions(2));
  auto batch = here->begin();
  CHECK_THROWS_WITH_AS(++batch, "bad number 2 [in the DataLoader's batch 1]", ValueError);
  ++batch;
  CHECK(*batch == std::vector<int>{3, 4});
  const auto there = make_data_loader(Counter(6, 0), DataLoaderOptions(2).workers(1));
  CHECK_THROWS_WITH_AS(
      there->begin(),
      "Caught exception in DataLoader worker thread. Original message: bad number 0 [in worker 0, batch 0]",
      WorkerException);
}

TEST_CASE("transforms map the batches of stateful datasets, and shared ones are one object") {
  const auto square = transforms::Lambda<int>([](int n) { return n * n; });
  const auto sum = transforms::Collate<int>([](std::vector<int> batch) {
    int total = 0;
    for (const int n : batch) total += n;
    return total;
  });
  for (const size_t workers : {0, 1}) {
    auto shared = datasets::make_shared_dataset<Counter>(5);
    const auto loader = make_data_loader(datasets::map(shared.map(square), sum), DataLoaderOptions(2).workers(workers));
    std::vector<int> sums;
    for (const int n : *loader) sums.push_back(n);
    CHECK(sums == std::vector<int>{1, 13, 16});
    CHECK(shared->resets == 1);
    CHECK(shared->position == 5);
  }
}

// Numbers, as many as are asked for.
struct Ones : datasets::StreamDataset<Ones, std::vector<int>> {
  std::vector<int> get_batch(size_t size) override { return std::vector<int>(size, 1); }
  std::optional<size_t> size() const override { return std::nullopt; }
};

TEST_CASE("a stream dataset gives as many examples as its sampler asks for") {
  for (const size_t workers : {0, 2}) {
    const auto options = DataLoaderOptions(4).workers(workers);
    const auto loader = make_data_loader(Ones(), samplers::StreamSampler(10), options);
    CHECK(epoch(*loader) == Batches{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}});
    auto drop = options;
    CHECK(epoch(*make_data_loader(Ones(), samplers::StreamSampler(10), drop.drop_last(true))).size() == 2);
  }
  CHECK_THROWS_WITH_AS(make_data_loader(Ones(), samplers::StreamSampler(10), DataLoaderOptions(4).workers(-1)),
                       "DataLoader: the number of workers must be at least 0, got -1", ValueError);
  CHECK_THROWS_WITH_AS(make_data_loader<samplers::StreamSampler>(Ones(), 4),
                       "make_data_loader: the dataset has no size; pass a sampler", ValueError);
}

TEST_CASE("TensorLambda and Normalize leave targets alone; Collate makes one of a batch") {
  auto dataset = datasets::TensorPairDataset(tensor({1., 3., 5.}).view({3, 1, 1, 1}), tensor({7, 8, 9}))
                     .map(transforms::TensorLambda<>([](Tensor t) { return t.mul(2); }))
                     .map(transforms::Normalize<>(4, 2))
                     .map(transforms::Collate<Example<>>([](std::vector<Example<>> batch) { return batch.back(); }));
  const auto loader = make_data_loader<samplers::SequentialSampler>(dataset, 2);
  auto batch = loader->begin();
  CHECK(batch->data.item<float>() == 1);  // (2 * 3 - 4) / 2
  CHECK(batch->target.item<int64_t>() == 8);
}

// The worker's number, and a number of the batch's generator.
struct Drawn : datasets::Dataset<Drawn, uint64_t> {
  uint64_t get(size_t) override {
    const WorkerInfo* worker = get_worker_info();
    if (worker && (worker->id >= worker->num_workers || seen_seed.value_or(worker->seed) != worker->seed)) return 0;
    if (worker) seen_seed = worker->seed;
    return data::detail::draw_seed(batch_generator());
  }
  std::optional<size_t> size() const override { return 8; }
  std::optional<uint64_t> seen_seed;  // of this worker's copy
};

TEST_CASE("each batch has a random stream, of the generator's seed, whatever the number of workers") {
  const auto draw = [](uint64_t seed, size_t workers) {
    auto generator = make_generator<CPUGeneratorImpl>(seed);
    const auto options = DataLoaderOptions(2).workers(workers).generator(generator);
    const auto loader = make_data_loader<samplers::SequentialSampler>(Drawn(), options);
    std::vector<uint64_t> all;
    for (auto& batch : *loader) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  };
  const std::vector<uint64_t> expected = draw(1, 0);
  CHECK(std::set<uint64_t>(expected.begin(), expected.end()).size() == 8);
  CHECK(draw(1, 1) == expected);
  CHECK(draw(1, 3) == expected);
  CHECK(draw(2, 3) != expected);
  CHECK(get_worker_info() == nullptr);
  CHECK(batch_generator() == default_generator());

  // The default generator is the source otherwise, and every epoch draws anew.
  manual_seed(4);
  const auto loader = make_data_loader<samplers::SequentialSampler>(Drawn(), 8);
  const std::vector<uint64_t> first = *loader->begin(), second = *loader->begin();
  CHECK(first != second);
  manual_seed(4);
  CHECK(*loader->begin() == first);
}

TEST_CASE("workers have the seeds that follow the epoch's") {
  struct Seeds : datasets::Dataset<Seeds, uint64_t> {
    uint64_t get(size_t) override { return get_worker_info()->seed - get_worker_info()->id; }
    std::optional<size_t> size() const override { return 20; }
  };
  const auto options = DataLoaderOptions(1).workers(4).generator(make_generator<CPUGeneratorImpl>(6));
  std::set<uint64_t> bases;
  const auto loader = make_data_loader(Seeds(), options);
  for (auto& batch : *loader) bases.insert(batch[0]);
  CHECK(bases.size() == 1);
}

}  // namespace
