#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "rushlight.h"
#include "tests/data/batches.h"
#include "tests/warnings.h"

namespace {

using namespace rush;
using namespace rush::data;
using rush::testing::Batches;
using rush::testing::epoch;

// Example i is the number i; some take long, some fail.
struct Numbers : datasets::Dataset<Numbers, int> {
  size_t count;
  size_t slow = 1000, bad = 1000;
  std::shared_ptr<std::atomic<int>> loaded = std::make_shared<std::atomic<int>>(0);

  explicit Numbers(size_t count) : count(count) {}
  int get(size_t index) override {
    if (index == bad) throw std::out_of_range("no number " + std::to_string(index));
    if (index == slow) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ++*loaded;
    return static_cast<int>(index);
  }
  std::optional<size_t> size() const override { return count; }
};

TEST_CASE("a sequential loader gives every example once, in order, with any number of workers") {
  for (size_t workers : {0, 1, 3}) {
    CAPTURE(workers);
    const auto loader =
        make_data_loader<samplers::SequentialSampler>(Numbers(7), DataLoaderOptions(3).workers(workers));
    for (int repeat = 0; repeat < 2; ++repeat) CHECK(epoch(*loader) == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
  }
}

TEST_CASE("drop_last leaves out the batch that is not full") {
  const auto options = DataLoaderOptions(3).drop_last(true);
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(Numbers(7), options)) == Batches{{0, 1, 2}, {3, 4, 5}});
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(Numbers(6), options)).size() == 2);
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(Numbers(2), options)).empty());
}

TEST_CASE("an empty dataset has no batches in order, with a warning, and cannot be shuffled") {
  const rush::testing::Warnings warnings;
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(Numbers(0), 4)).empty());
  CHECK(warnings.last().starts_with("make_data_loader: the dataset is empty"));
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(Numbers(0), DataLoaderOptions(4).workers(2))).empty());
  CHECK_THROWS_WITH_AS(make_data_loader(Numbers(0), 4),
                       "make_data_loader: the dataset is empty, there is nothing to draw from", rush::ValueError);
}

TEST_CASE("an iterator whose epoch another begin() ended does not take the new epoch's batches") {
  const auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(6), 2);
  auto earlier = loader->begin();
  auto later = loader->begin();
  CHECK((*earlier)[0] == 0);  // the batch that it has stays
  CHECK_THROWS_AS(++earlier, rush::Error);
  ++later;
  CHECK((*later)[0] == 2);
}

TEST_CASE("an error of a dataset names batch and index, and in a worker this too") {
  struct Broken : datasets::Dataset<Broken, int> {
    int get(size_t index) override {
      if (index == 5) throw std::out_of_range("no such page");
      RUSH_CHECK_VALUE(index != 7, "page 7 is torn");
      return 0;
    }
    std::optional<size_t> size() const override { return 8; }
  };
  const auto here = make_data_loader<samplers::SequentialSampler>(Broken(), 2);
  auto place = here->begin();
  ++place;
  CHECK_THROWS_AS(++place, std::out_of_range);
  CHECK_THROWS_WITH_AS(++place, "page 7 is torn [in the DataLoader's batch 3, index 7]", rush::ValueError);
  const auto message_of = [](auto& loader) {
    std::vector<std::string> messages;
    auto batch = loader.begin();
    for (int i = 0; i < 3; ++i) {
      try {
        ++batch;
      } catch (const rush::Error& error) {
        messages.push_back(error.what());
      }
    }
    return messages;
  };
  const auto there = make_data_loader<samplers::SequentialSampler>(Broken(), DataLoaderOptions(2).workers(1));
  const auto messages = message_of(*there);
  REQUIRE(messages.size() == 2);
  CHECK(messages[0] ==
        "Caught exception in DataLoader worker thread. Original message: no such page [in worker 0, batch 2, index 5]");
  CHECK(messages[1].find("Original message: page 7 is torn [in worker 0, batch 3, index 7]") != std::string::npos);
}

TEST_CASE("an error of a transform names the batch, and none of its indices") {
  const transforms::Lambda<int> refuse([](int number) {
    RUSH_CHECK_VALUE(number != 4, "number 4 cannot be transformed");
    return number;
  });
  const auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(6).map(refuse), 3);
  auto batch = loader->begin();
  CHECK_THROWS_WITH_AS(++batch, "number 4 cannot be transformed [in the DataLoader's batch 1]", rush::ValueError);
}

TEST_CASE("the random order is a new permutation every epoch, and the seed's") {
  const auto two_epochs = [](size_t workers) {
    manual_seed(5);
    const auto loader = make_data_loader(Numbers(50), DataLoaderOptions(8).workers(workers));
    Batches first = epoch(*loader), second = epoch(*loader);
    CHECK(first != second);
    std::vector<int> all;
    for (const auto& batch : first) all.insert(all.end(), batch.begin(), batch.end());
    CHECK(!std::is_sorted(all.begin(), all.end()));
    CHECK(std::set<int>(all.begin(), all.end()).size() == 50);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const Batches expected = two_epochs(0);
  CHECK(two_epochs(0) == expected);
  CHECK(two_epochs(3) == expected);
}

TEST_CASE("a generator of its own makes a sampler independent of the default one") {
  const auto draw = [] { return *samplers::RandomSampler(20, make_generator<CPUGeneratorImpl>(3)).next(20); };
  const auto first = draw();
  manual_seed(99);
  CHECK(draw() == first);
}

TEST_CASE("workers keep the order though one is slow, or deliver as ready") {
  for (const bool ordered : {true, false}) {
    CAPTURE(ordered);
    // Number 0 waits: for a later number to be loaded, or even for one to be delivered.
    std::promise<void> gate;
    std::atomic<bool> open = false;
    const auto opened = gate.get_future().share();
    const auto let_go = [&] {
      if (!open.exchange(true)) gate.set_value();
    };
    const auto dataset = Numbers(8).map(transforms::Lambda<int>([&, opened](int n) {
      if (n == 0) opened.wait();
      if (ordered && n > 0) let_go();
      return n;
    }));
    const auto options = DataLoaderOptions(1).workers(2).enforce_ordering(ordered);
    Batches batches;
    const auto loader = make_data_loader<samplers::SequentialSampler>(dataset, options);
    for (auto& batch : *loader) {
      batches.push_back(batch);
      let_go();
    }
    CHECK((batches.front() == std::vector<int>{0}) == ordered);
    CHECK(std::is_sorted(batches.begin(), batches.end()) == ordered);
    CHECK(std::set<std::vector<int>>(batches.begin(), batches.end()).size() == 8);
  }
}

TEST_CASE("workers load ahead, but not more than max_jobs batches") {
  Numbers numbers(100);
  const auto loaded = numbers.loaded;
  const auto loader =
      make_data_loader<samplers::SequentialSampler>(numbers, DataLoaderOptions(1).workers(1).max_jobs(4));
  auto batch = loader->begin();
  while (*loaded < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(*loaded == 4);
  ++batch;
  CHECK((*batch)[0] == 1);
}

TEST_CASE("an exception in a dataset reaches the caller, and the loader goes on") {
  Numbers numbers(4);
  numbers.bad = 1;
  for (size_t workers : {0, 2}) {
    CAPTURE(workers);
    const auto loader = make_data_loader<samplers::SequentialSampler>(numbers, DataLoaderOptions(1).workers(workers));
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto batch = loader->begin();
      if (workers == 0) {
        CHECK_THROWS_WITH_AS(++batch, "no number 1", std::out_of_range);
      } else {
        try {
          ++batch;
          FAIL("nothing was thrown");
        } catch (const WorkerException& error) {
          CHECK(std::string(error.what()).ends_with(", batch 1, index 1]"));
          CHECK(error.message == "Caught exception in DataLoader worker thread. Original message: no number 1");
          CHECK_THROWS_WITH_AS(std::rethrow_exception(error.original_exception), "no number 1", std::out_of_range);
        }
      }
      ++batch;
      CHECK((*batch)[0] == 2);
    }
  }
}

TEST_CASE("an epoch may be broken off, and a loader destroyed in the middle of one") {
  Numbers numbers(40);
  numbers.slow = 2;
  const auto loader = make_data_loader<samplers::SequentialSampler>(numbers, DataLoaderOptions(1).workers(3));
  for (auto& batch : *loader) {
    if (batch[0] == 1) break;
  }
  CHECK(epoch(*loader).size() == 40);
  loader->begin();
}

TEST_CASE("a batch that is late is an error when a timeout is set") {
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  const auto dataset = Numbers(2).map(transforms::Lambda<int>([opened](int n) {
    opened.wait();
    return n;
  }));
  const auto options = DataLoaderOptions(1).workers(2).timeout(std::chrono::milliseconds(10));
  const auto loader = make_data_loader<samplers::SequentialSampler>(dataset, options);
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK_THROWS_WITH_AS(loader->begin(),
                         "DataLoader (batch size 1): none of its 2 workers delivered a batch within 10 ms",
                         TimeoutError);
  }
  gate.set_value();
}

TEST_CASE("iterators know the end, and options are checked") {
  const auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(1), 1);
  auto batch = loader->begin();
  CHECK(batch != loader->end());
  CHECK((*batch)[0] == 0);
  ++batch;
  CHECK(batch == loader->end());
  CHECK_THROWS_AS(*batch, Error);
  CHECK_THROWS_AS(++batch, Error);
  CHECK_THROWS_AS(make_data_loader(Numbers(1), 0), ValueError);
}

TEST_CASE("a shared dataset is one object for all workers") {
  auto shared = datasets::make_shared_dataset<Numbers>(10);
  shared->bad = 1000;
  const auto loaded = shared->loaded;
  CHECK(epoch(*make_data_loader<samplers::SequentialSampler>(shared, DataLoaderOptions(2).workers(2))).size() == 5);
  CHECK(*loaded == 10);
}

TEST_CASE("lambdas map batches, in a chain") {
  const auto loader = make_data_loader<samplers::SequentialSampler>(
      Numbers(5)
          .map(transforms::Lambda<int>([](int n) { return n * n; }))
          .map(transforms::BatchLambda<std::vector<int>, int>(
              [](std::vector<int> batch) { return std::accumulate(batch.begin(), batch.end(), 0); })),
      DataLoaderOptions(2).workers(1));
  std::vector<int> sums;
  for (int sum : *loader) sums.push_back(sum);
  CHECK(sums == std::vector<int>{1, 13, 16});
}

TEST_CASE("loops of a worker are not split over threads") {
  const auto loader =
      make_data_loader(Numbers(1).map(transforms::Lambda<int>([](int) { return in_parallel_region() ? 1 : 0; })),
                       DataLoaderOptions(1).workers(1));
  CHECK((*loader->begin())[0] == 1);
  CHECK(!in_parallel_region());
}

TEST_CASE("tensor datasets, Normalize and Stack") {
  const Tensor images = tensor({1., 2., 3., 4., 5., 6.}).view({3, 2, 1, 1});  // 3 images of 2 channels
  const Tensor labels = tensor({7, 8, 9});
  auto dataset = datasets::TensorPairDataset(images, labels)
                     .map(transforms::Normalize<>({1, 2}, {1, 2}))
                     .map(transforms::Stack<>());
  CHECK(*dataset.size() == 3);
  const auto loader = make_data_loader<samplers::SequentialSampler>(dataset, DataLoaderOptions(2).workers(1));
  auto batch = loader->begin();
  CHECK(batch->data.sizes() == IntArrayRef({2, 2, 1, 1}));
  CHECK(batch->data[1][0].item<float>() == 2);  // (3 - 1) / 1
  CHECK(batch->data[1][1].item<float>() == 1);  // (4 - 2) / 2
  CHECK(batch->target[1].item<int64_t>() == 8);
  ++batch;
  CHECK(batch->target.sizes() == IntArrayRef({1}));

  auto alone = datasets::TensorDataset(images).map(transforms::Stack<TensorExample>());
  CHECK(make_data_loader(alone, 3)->begin()->data.sizes() == IntArrayRef({3, 2, 1, 1}));
  CHECK_THROWS_AS(datasets::TensorPairDataset(images, tensor({1, 2})), ValueError);
  CHECK_THROWS_AS(datasets::TensorDataset(scalar_tensor(1)), ValueError);
}

TEST_CASE("Stack makes what stack makes, whatever the examples' memory") {
  const Tensor rows = randn({2, 3, 4}), leaf = randn({3, 4}).requires_grad_();
  const std::vector<std::vector<Tensor>> cases = {
      {rows[0], rows[1]},                                          // bytes one after the other
      {rows[0].t(), rows[1].t()},                                  // columns
      {rows[0], rows[1].to(kFloat64)},                             // to be promoted
      {rows.unsqueeze(0).contiguous(MemoryFormat::ChannelsLast)},  // channels last
      {scalar_tensor(1), scalar_tensor(2)},
      {empty({0, 3}), empty({0, 3})},
      {leaf, rows[1]},
  };
  for (const std::vector<Tensor>& tensors : cases) {
    std::vector<TensorExample> examples(tensors.begin(), tensors.end());
    const Tensor batch = transforms::Stack<TensorExample>().apply_batch(examples).data, expected = stack(tensors);
    CHECK(batch.equal(expected));
    CHECK(batch.scalar_type() == expected.scalar_type());
    CHECK(batch.strides() == expected.strides());
    CHECK(batch.requires_grad() == expected.requires_grad());
  }
  CHECK_THROWS_AS(transforms::Stack<TensorExample>().apply_batch({rows[0], rows[0].t()}), ValueError);
  CHECK_THROWS_AS(transforms::Stack<TensorExample>().apply_batch({}), ValueError);
}

}  // namespace
