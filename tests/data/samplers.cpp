#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/device/mt19937.h"
#include "nn/data/distributed_samplers.h"

namespace {

using namespace rush;
using namespace rush::data::samplers;
using Indices = std::vector<size_t>;

template <class SamplerType>
Indices remaining_indices(SamplerType& sampler, size_t batch_size) {
  Indices all;
  while (const auto batch = sampler.next(batch_size)) {
    REQUIRE(!batch->empty());
    REQUIRE(batch->size() <= batch_size);
    all.insert(all.end(), batch->begin(), batch->end());
  }
  return all;
}

Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

// What libtorch's distributed samplers give, by their source: the rounded number of examples, in contiguous blocks.
const struct {
  size_t size, replicas;
  bool duplicates;
  Indices expected;  // of all replicas, in order
} kBlocks[] = {
    {10, 3, true, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}},
    {10, 3, false, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
    {4, 2, true, {0, 1, 2, 3}},
    {2, 5, true, {0, 1, 0, 1, 0}},
    {2, 5, false, {}},
    {5, 1, true, {0, 1, 2, 3, 4}},
    {0, 2, true, {}},
};

TEST_CASE("distributed samplers give every replica as many examples, and all of them to all together") {
  for (const auto& c : kBlocks) {
    for (const size_t batch_size : {1, 3, 100}) {
      CAPTURE(c.size);
      CAPTURE(c.replicas);
      Indices sequential, random;
      for (size_t rank = 0; rank < c.replicas; ++rank) {
        DistributedSequentialSampler in_order(c.size, c.replicas, rank, c.duplicates);
        const Indices part = remaining_indices(in_order, batch_size);
        CHECK(part.size() == c.expected.size() / c.replicas);
        CHECK(in_order.index() == part.size() * (rank + 1));
        sequential.insert(sequential.end(), part.begin(), part.end());

        DistributedRandomSampler shuffled(c.size, c.replicas, rank, c.duplicates);
        const Indices drawn = remaining_indices(shuffled, batch_size);
        CHECK(drawn.size() == part.size());
        random.insert(random.end(), drawn.begin(), drawn.end());
      }
      CHECK(sequential == c.expected);
      CHECK(sorted(random) == sorted(c.expected));
    }
  }
}

TEST_CASE("the order of a distributed random sampler is the epoch's, whatever the default generator") {
  DistributedRandomSampler sampler(40, 2, 1);
  const Indices first = remaining_indices(sampler, 7);
  CHECK(!std::is_sorted(first.begin(), first.end()));
  manual_seed(3);
  sampler.reset();
  CHECK(remaining_indices(sampler, 7) == first);
  sampler.set_epoch(1);
  CHECK(sampler.epoch() == 1);
  CHECK(remaining_indices(sampler, 7).empty());  // not before reset
  sampler.reset();
  CHECK(remaining_indices(sampler, 7) != first);
  sampler.reset(6);
  CHECK(remaining_indices(sampler, 7).size() == 3);

  // A state dict is of the epoch that was started, though the next is named already.
  sampler.reset(40);
  sampler.next(3);
  sampler.set_epoch(2);
  DistributedRandomSampler other(40, 2, 1);
  other.load_state_dict(sampler.state_dict());
  CHECK(other.epoch() == 1);
  CHECK(remaining_indices(other, 4) == remaining_indices(sampler, 4));
}

TEST_CASE("the rank must be below the number of replicas") {
  CHECK_THROWS_WITH_AS(DistributedRandomSampler(10, 2, 2),
                       "DistributedSampler: expected a rank below the number of replicas, got rank 2 of 2", ValueError);
  CHECK_THROWS_AS(DistributedSequentialSampler(10, 0, 0), ValueError);
}

TEST_CASE("a stream sampler gives numbers of examples up to the epoch's") {
  StreamSampler sampler(10);
  const auto sizes = [&] {
    Indices all;
    while (const auto request = sampler.next(4)) all.push_back(*request);
    return all;
  };
  CHECK(sizes() == Indices{4, 4, 2});
  CHECK(sizes().empty());
  sampler.reset();
  CHECK(sizes() == Indices{4, 4, 2});
  sampler.reset(3);
  CHECK(sizes() == Indices{3});
}

// Saved after some batches, and loaded into another sampler, which may be anywhere: the rest of the epoch and the next
// one are the same.
template <class SamplerType, class Make>
void check_resumes(Make make) {
  for (const size_t taken : {0, 1, 3, 4}) {
    CAPTURE(taken);
    SamplerType sampler = make(11);
    for (size_t i = 0; i < taken; ++i) sampler.next(3);
    const StateDict state = sampler.state_dict();
    const auto two_epochs = [](SamplerType& s) {
      Indices all;
      for (int epoch = 0; epoch < 2; ++epoch, s.reset()) {
        while (const auto batch = s.next(3)) {
          all.push_back(batch->size());
          if constexpr (std::is_same_v<typename SamplerType::BatchRequestType, Indices>) {
            all.insert(all.end(), batch->begin(), batch->end());
          }
        }
      }
      return all;
    };
    const Indices expected = two_epochs(sampler);
    SamplerType other = make(99);
    other.next(5);
    other.load_state_dict(state);
    CHECK(two_epochs(other) == expected);
  }
}

TEST_CASE("samplers resume from their state dicts") {
  check_resumes<SequentialSampler>([](uint64_t) { return SequentialSampler(11); });
  check_resumes<RandomSampler>([](uint64_t seed) { return RandomSampler(11, make_generator<CPUGeneratorImpl>(seed)); });
  check_resumes<RandomSampler>(
      [](uint64_t seed) { return RandomSampler(11, make_generator<Mt19937GeneratorImpl>(seed)); });
  check_resumes<StreamSampler>([](uint64_t) { return StreamSampler(11); });
  check_resumes<DistributedSequentialSampler>([](uint64_t) { return DistributedSequentialSampler(31, 3, 1); });
  check_resumes<DistributedRandomSampler>([](uint64_t epoch) {
    DistributedRandomSampler sampler(31, 3, 1);
    sampler.set_epoch(epoch);
    sampler.reset();
    return sampler;
  });
}

TEST_CASE("a random sampler on the default generator keeps the order of its epoch") {
  RandomSampler sampler(20), other(20);
  sampler.next(5);
  const StateDict state = sampler.state_dict();
  other.load_state_dict(state);
  CHECK(other.index() == 5);
  CHECK(remaining_indices(other, 4) == remaining_indices(sampler, 4));
}

struct NoState : Sampler<> {
  void reset(std::optional<size_t>) override {}
  std::optional<Indices> next(size_t) override { return std::nullopt; }
};

TEST_CASE("a state dict that does not fit is refused, and the sampler stays where it was") {
  const std::string who = "Sampler::load_state_dict: the state dict does not fit; ";
  RandomSampler sampler(9, make_generator<CPUGeneratorImpl>(1)), twin(9, make_generator<CPUGeneratorImpl>(1));
  for (RandomSampler* s : {&sampler, &twin}) s->next(4);

  const auto refuses = [&](const StateDict& state, const std::string& why) {
    CHECK_THROWS_WITH_AS(sampler.load_state_dict(state), (who + why).c_str(), ValueError);
  };
  const auto changed = [&](const std::string& name, int64_t value) {
    StateDict state = sampler.state_dict();
    state[name].fill_(value);
    return state;
  };
  refuses(changed("index", 10), "wrong: index is out of range: 10, expected at most 9");
  refuses(changed("index", -1), "wrong: index is out of range: -1, expected at most 9");
  refuses(changed("size", 8), "wrong: size is 8 instead of 9");
  refuses(changed("order.seed", int64_t{1} << 32), "wrong: order.seed is out of range: 4294967296");
  refuses(SequentialSampler(9).state_dict(), "missing: order.seed, order.offset, generator.seed, generator.offset");
  StateDict more = sampler.state_dict();
  more.insert("more", more["index"]);
  refuses(more, "unexpected: more");
  CHECK_THROWS_AS(sampler.load_state_dict(changed("generator.offset", 2)), ValueError);

  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(remaining_indices(sampler, 2) == remaining_indices(twin, 2));
    sampler.reset();
    twin.reset();
  }
  NoState none;
  CHECK_THROWS_AS(none.state_dict(), NotImplementedError);
}

}  // namespace
