// A DataLoader that goes on where another one stood.
#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"

using namespace rush;
namespace samplers = rush::data::samplers;

namespace {

data::datasets::TensorDataset numbers(int64_t count) { return data::datasets::TensorDataset(arange(count)); }

template <class Loader>
std::vector<int64_t> first_of(const typename Loader::BatchType& batch) {
  std::vector<int64_t> values;
  for (const auto& example : batch) values.push_back(example.data.template item<int64_t>());
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("DataLoader: goes on within an epoch and between two, with any number of workers", Sampler,
                   samplers::SequentialSampler, samplers::RandomSampler) {
  for (const size_t workers : {0, 1, 3}) {
    for (const bool drop_last : {false, true}) {
      const auto options = data::DataLoaderOptions(4).workers(workers).drop_last(drop_last);
      const auto make = [&] { return data::make_data_loader<Sampler>(numbers(22), options); };
      manual_seed(7);
      const auto loader = make();
      using Loader = std::decay_t<decltype(*loader)>;
      // Three epochs, with the position and the generator's state after each batch and after each epoch.
      struct Moment {
        std::vector<int64_t> position;
        std::vector<uint8_t> random;
        size_t batches;  // that came before
      };
      std::vector<Moment> moments;
      std::vector<std::vector<int64_t>> batches;
      const auto note = [&] {
        moments.push_back({loader->position(), default_generator().get_state(), batches.size()});
      };
      note();
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (const auto& batch : *loader) {
          batches.push_back(first_of<Loader>(batch));
          note();
        }
        CHECK(loader->position().empty());
        note();
      }
      REQUIRE(batches.size() == (drop_last ? 15 : 18));

      for (const Moment& moment : moments) {
        manual_seed(99);
        const auto other = make();
        Generator random = default_generator();
        random.set_state(moment.random);
        other->resume(moment.position);
        CHECK(other->position() == moment.position);
        size_t next = moment.batches;
        while (next < batches.size()) {
          for (const auto& batch : *other) {
            REQUIRE(next < batches.size());
            CHECK(first_of<Loader>(batch) == batches[next++]);
          }
        }
      }
    }
  }
}

TEST_CASE("DataLoader: a position of another loader is refused") {
  manual_seed(1);
  const auto loader = data::make_data_loader<samplers::RandomSampler>(numbers(10), data::DataLoaderOptions(4));
  loader->begin();
  const std::vector<int64_t> good = loader->position();
  CHECK(good.size() == 5);
  CHECK_NOTHROW(loader->check_position(good));
  for (const std::vector<int64_t>& bad : std::vector<std::vector<int64_t>>{{1},
                                                                           {5, 1, 10, 1, 0},
                                                                           {4, -1, 10, 1, 0},
                                                                           {4, 1, 11, 1, 0},
                                                                           {4, 1, 10, 1, 3},
                                                                           {4, 1, 10, 1},
                                                                           {4, 1, 10, 1, 0, 0}}) {
    CHECK_THROWS_AS(loader->check_position(bad), ValueError);
    CHECK_THROWS_AS(loader->resume(bad), ValueError);
  }
  CHECK(loader->position() == good);
  loader->resume({4, int64_t{1} << 62, 10, 1, 0});
  CHECK(loader->begin() == loader->end());

  const auto free = data::make_data_loader<samplers::SequentialSampler>(
      numbers(10), data::DataLoaderOptions(4).workers(2).enforce_ordering(false));
  CHECK_THROWS_AS(free->position(), ValueError);
}
