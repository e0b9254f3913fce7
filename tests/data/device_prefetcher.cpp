// DevicePrefetcher where the device is the CPU: the loader's batches, none of them ahead. What it does on a GPU is in
// tests/cuda/prefetch.cpp.
#include "nn/data/device_prefetcher.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rushlight.h"

namespace {

using namespace rush;
using namespace rush::data;

// Example i is (i, -i); one fails.
struct Pairs : datasets::Dataset<Pairs> {
  size_t bad = 1000;
  Example<> get(size_t index) override {
    if (index == bad) throw std::out_of_range("no pair");
    const auto value = static_cast<double>(index);
    return {full({2}, value), full({}, -value)};
  }
  std::optional<size_t> size() const override { return 10; }
};

auto loader_of_pairs(Pairs pairs, size_t workers = 0) {
  return make_data_loader<samplers::SequentialSampler>(pairs.map(transforms::Stack<>()).map(transforms::PinMemory<>()),
                                                       DataLoaderOptions(3).workers(workers));
}

double first_of(const Example<>& batch) { return batch.data[0][0].item<double>(); }

}  // namespace

TEST_CASE("a prefetcher hands out the loader's batches, epoch after epoch") {
  for (const size_t workers : {0, 2}) {
    const auto loader = loader_of_pairs({}, workers);
    DevicePrefetcher batches(*loader, kCPU);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<double> firsts;
      for (const Example<>& batch : batches) {
        firsts.push_back(first_of(batch));
        CHECK(equal(batch.data.select(1, 1), batch.target.neg()));
      }
      CHECK(firsts == std::vector<double>{0, 3, 6, 9});
    }
  }
}

TEST_CASE("an epoch that is broken off begins anew, and the end has no batch") {
  const auto loader = loader_of_pairs({});
  DevicePrefetcher batches(*loader, kCPU);
  auto batch = batches.begin();
  ++batch;
  batch = batches.begin();
  CHECK(first_of(*batch) == 0);
  for (int i = 0; i < 4; ++i) ++batch;
  CHECK(batch == batches.end());
  CHECK_THROWS_AS(*batch, Error);
  ++batch;
  CHECK(batch == batches.end());
}

TEST_CASE("a prefetcher throws what its loader throws, in its turn, and goes on") {
  Pairs pairs;
  pairs.bad = 4;
  const auto loader = loader_of_pairs(pairs);
  DevicePrefetcher batches(*loader, kCPU);
  auto batch = batches.begin();
  CHECK(first_of(*batch) == 0);
  CHECK_THROWS_AS(++batch, std::out_of_range);
  CHECK_FALSE(batch == batches.end());
  CHECK_THROWS_AS(*batch, Error);
  ++batch;
  CHECK(first_of(*batch) == 6);
}

TEST_CASE("a prefetcher's state is where its caller is") {
  const auto loader = loader_of_pairs({}, 2), other = loader_of_pairs({});
  DevicePrefetcher batches(*loader, kCPU), twin(*other, kCPU);
  auto batch = batches.begin();
  ++batch;
  twin.load_state_dict(batches.state_dict());
  CHECK(first_of(*twin.begin()) == 6);
}

TEST_CASE("tensors are found in examples, lists and alone") {
  int count = 0;
  const auto note = [&](const Tensor&) { ++count; };
  std::vector<Example<>> examples = {{ones({2}), ones({})}, {ones({2}), Tensor()}};
  data::detail::for_each_tensor(examples, note);
  CHECK(count == 3);
  TensorExample alone(ones({3}));
  data::detail::for_each_tensor(alone, note);
  CHECK(count == 4);
}

TEST_CASE("a prefetcher takes one to eight batches ahead") {
  const auto loader = loader_of_pairs({});
  using Prefetcher = DevicePrefetcher<std::decay_t<decltype(*loader)>>;
  CHECK_THROWS_AS(Prefetcher(*loader, kCPU, 0), ValueError);
  CHECK_THROWS_AS(Prefetcher(*loader, kCPU, 9), ValueError);
  if (!cuda::is_available()) CHECK_THROWS_AS(Prefetcher(*loader, kCUDA), Error);
}
