#include "core/device/generator.h"

#include <map>
#include <random>

#include "core/device/backend.h"
#include "core/io/little_endian.h"

namespace rush {

namespace {
constexpr uint64_t kWordsPerBlock = 4;
constexpr size_t kStateBytes = 16;

void check_offset(uint64_t offset) {
  RUSH_CHECK_VALUE(offset % kWordsPerBlock == 0, "Generator: expected an offset that is a multiple of 4, got ", offset);
}

}  // namespace

void GeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t GeneratorImpl::seed() {
  std::random_device source;
  const uint64_t seed = join_words(source(), source());
  set_current_seed(seed);
  return seed;
}

void GeneratorImpl::set_offset(uint64_t offset) {
  check_offset(offset);
  offset_ = offset;
}

PhiloxState GeneratorImpl::reserve(uint64_t increments) {
  const PhiloxState reserved{seed_, offset_};
  offset_ += (increments + kWordsPerBlock - 1) / kWordsPerBlock * kWordsPerBlock;
  return reserved;
}

std::vector<uint8_t> GeneratorImpl::get_state() const {
  std::vector<uint8_t> state;
  state.reserve(kStateBytes);
  io::put_little_endian(state, seed_, 8);
  io::put_little_endian(state, offset_, 8);
  return state;
}

void GeneratorImpl::set_state(const std::vector<uint8_t>& state) {
  RUSH_CHECK_VALUE(state.size() == kStateBytes, "Generator: expected a state of ", kStateBytes, " bytes, got ",
                   state.size());
  const uint64_t offset = io::get_little_endian(state.data() + 8, 8);
  check_offset(offset);
  set_current_seed(io::get_little_endian(state.data(), 8));
  set_offset(offset);
}

intrusive_ptr<GeneratorImpl> GeneratorImpl::clone() const {
  auto copy = make_intrusive<GeneratorImpl>(device_, seed_);
  copy->offset_ = offset_;
  return copy;
}

intrusive_ptr<GeneratorImpl> CPUGeneratorImpl::clone() const {
  auto copy = make_intrusive<CPUGeneratorImpl>(current_seed());
  copy->set_offset(get_offset());
  return copy;
}

namespace {
// The default generators that were asked for, by device type and index. A generator, once made, stays where it is.
struct DefaultGenerators {
  std::mutex mutex;
  uint64_t seed = kDefaultSeed;
  std::map<std::pair<DeviceType, int>, Generator> made;
};

// Never destroyed: worker threads may draw while the program's statics are being torn down.
DefaultGenerators& default_generators() {
  static DefaultGenerators& instance = *new DefaultGenerators;
  return instance;
}
}  // namespace

const Generator& default_generator(Device device) {
  Backend* backend = backend_or_null(device.type);
  RUSH_CHECK_NOT_IMPLEMENTED(backend, "default_generator: there is none for device ", device);
  device = concrete_device(device);
  const int index = device.index < 0 ? 0 : device.index;
  RUSH_CHECK_VALUE(!device.is_cpu() || index == 0, "default_generator: there is no device ", device);
  DefaultGenerators& all = default_generators();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Generator& generator = all.made[{device.type, index}];
  if (!generator.defined()) generator = backend->make_generator(Device(device.type, index), all.seed);
  return generator;
}

void set_default_generator(const Generator& generator) {
  Device device = generator.device();
  if (device.index < 0) device.index = 0;
  DefaultGenerators& all = default_generators();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.made[{device.type, device.index}] = generator;
}

void manual_seed(uint64_t seed) {
  DefaultGenerators& all = default_generators();
  std::vector<Generator> made;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.seed = seed;
    for (const auto& [device, generator] : all.made) {
      if (generator.defined()) made.push_back(generator);
    }
  }
  // With the table unlocked: a thread that holds a generator's lock may be asking for a default generator.
  for (Generator& generator : made) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

}  // namespace rush
