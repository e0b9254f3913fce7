#include "core/device/generator.h"
#include "core/device/backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using rush::CPUGeneratorImpl;
using rush::Generator;

TEST_CASE("reservations follow one another in whole blocks") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(5);
  const auto first = generator.reserve(1);
  const auto second = generator.reserve(8);
  const auto third = generator.reserve(4);
  CHECK(first.seed == 5);
  CHECK(first.offset == 0);
  CHECK(second.offset == 4);
  CHECK(third.offset == 12);
  CHECK(generator.get_offset() == 16);
  CHECK(third.replay == nullptr);
}

TEST_CASE("seeding starts a stream from its beginning") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>();
  CHECK(generator.current_seed() == rush::kDefaultSeed);
  CHECK(generator.device() == rush::kCPU);
  generator.reserve(100);
  generator.set_current_seed(6);
  CHECK(generator.current_seed() == 6);
  CHECK(generator.get_offset() == 0);

  generator.set_offset(12);
  CHECK(generator.reserve(4).offset == 12);
  CHECK_THROWS_AS(generator.set_offset(13), rush::ValueError);
  CHECK(generator.get_offset() == 16);
}

TEST_CASE("seed() takes an unforeseeable number") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(5);
  const uint64_t first = generator.seed();
  CHECK(generator.current_seed() == first);
  CHECK(generator.seed() != first);
}

TEST_CASE("a state saved and restored continues the stream") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(0x0102030405060708);
  generator.reserve(0x1234);
  const std::vector<uint8_t> state = generator.get_state();
  CHECK(state == std::vector<uint8_t>{8, 7, 6, 5, 4, 3, 2, 1, 0x34, 0x12, 0, 0, 0, 0, 0, 0});

  Generator other = rush::make_generator<CPUGeneratorImpl>(1);
  other.set_state(state);
  CHECK(other.current_seed() == 0x0102030405060708);
  CHECK(other.get_offset() == 0x1234);
}

TEST_CASE("a state that no generator can have had is refused and changes nothing") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(5);
  generator.reserve(4);
  std::vector<uint8_t> odd_offset(16, 0);
  odd_offset[8] = 2;
  CHECK_THROWS_AS(generator.set_state(odd_offset), rush::ValueError);
  CHECK_THROWS_WITH_AS(generator.set_state({1, 2, 3}), "Generator: expected a state of 16 bytes, got 3",
                       rush::ValueError);
  CHECK_THROWS_AS(generator.set_state(std::vector<uint8_t>(17, 0)), rush::ValueError);
  CHECK(generator.current_seed() == 5);
  CHECK(generator.get_offset() == 4);
}

TEST_CASE("copies of a handle share the state, a clone does not") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(5);
  Generator alias = generator;
  generator.reserve(4);
  Generator clone = generator.clone();
  CHECK(alias == generator);
  CHECK_FALSE(clone == generator);
  CHECK(clone.get_state() == generator.get_state());
  alias.reserve(4);
  CHECK(generator.get_offset() == 8);
  CHECK(clone.get_offset() == 4);
}

TEST_CASE("an undefined generator explains itself") {
  Generator undefined;
  CHECK_FALSE(undefined.defined());
  CHECK_THROWS_AS(undefined.current_seed(), rush::Error);
  CHECK_THROWS_AS(undefined.reserve(4), rush::Error);
  CHECK_THROWS_AS(Generator(nullptr), rush::ValueError);
}

TEST_CASE("threads that share a generator never get the same words") {
  Generator generator = rush::make_generator<CPUGeneratorImpl>(5);
  constexpr int kThreads = 4;
  constexpr int kDraws = 2000;
  std::vector<std::vector<uint64_t>> offsets(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&generator, &own = offsets[t]] {
      for (int i = 0; i < kDraws; ++i) own.push_back(generator.reserve(4).offset);
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<uint64_t> all;
  for (const auto& own : offsets) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.back() == 4 * (kThreads * kDraws - 1));
}

/// Seeds all devices again when a test that changed the default generators ends.
struct RestoreDefaultSeed {
  ~RestoreDefaultSeed() { rush::manual_seed(rush::kDefaultSeed); }
};

TEST_CASE("the CPU has one default generator, which manual_seed seeds") {
  const RestoreDefaultSeed restore;
  const Generator& generator = rush::default_generator();
  CHECK(generator == rush::default_generator(rush::Device(rush::kCPU, 0)));
  generator.reserve(4);
  rush::manual_seed(17);
  CHECK(generator.current_seed() == 17);
  CHECK(generator.get_offset() == 0);
}

TEST_CASE("manual_seed does not wait for a lock while others wait for it") {
  const RestoreDefaultSeed restore;
  std::unique_lock<std::mutex> held(rush::default_generator().mutex());
  std::thread seeder([] { rush::manual_seed(18); });
  CHECK(rush::default_generator().defined());  // would wait for ever if the seeder kept the table locked
  held.unlock();
  seeder.join();
  CHECK(rush::default_generator().current_seed() == 18);
}

// Two devices without memory, of which the second is current.
class Twins final : public rush::Backend {
 public:
  int device_count() noexcept override { return 2; }
  int current_device() override { return 1; }
  rush::Allocator& allocator() override { return rush::allocator(rush::kCPU); }
};

TEST_CASE("a backend's devices have generators of their own, seeded before or after they are made") {
  const RestoreDefaultSeed restore;
  CHECK_THROWS_AS(rush::default_generator(rush::kMeta), rush::NotImplementedError);
  static Twins twins;
  const rush::DeviceType type = rush::register_backend("twins", twins);
  rush::manual_seed(21);
  const Generator& current = rush::default_generator(type);
  const Generator& first = rush::default_generator(rush::Device(type, 0));
  CHECK(current == rush::default_generator(rush::Device(type, 1)));
  CHECK_FALSE(current == first);
  CHECK(current.current_seed() == 21);
  CHECK(current.clone().device() == rush::Device("twins:1"));
  rush::manual_seed(22);
  CHECK(first.current_seed() == 22);
  CHECK_THROWS_AS(rush::default_generator(rush::Device(type, 2)), rush::ValueError);
  CHECK_THROWS_AS(rush::default_generator(rush::Device(rush::kCPU, 1)), rush::ValueError);
  CHECK_THROWS_AS(rush::register_backend("twins", twins), rush::ValueError);
  CHECK_THROWS_AS(rush::register_backend("Twin 2", twins), rush::ValueError);
}

}  // namespace
