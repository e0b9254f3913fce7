#include "core/device/mt19937.h"

#include <bit>
#include <random>
#include <sstream>

namespace rush {

struct Mt19937GeneratorImpl::Engine {
  std::mt19937 words;
};

Mt19937GeneratorImpl::Mt19937GeneratorImpl(uint64_t seed)  // whose lower 32 bits count, as in libtorch
    : GeneratorImpl(kCPU, seed), engine_(std::make_unique<Engine>(std::mt19937(static_cast<uint32_t>(seed)))) {}
Mt19937GeneratorImpl::~Mt19937GeneratorImpl() = default;

uint32_t Mt19937GeneratorImpl::random() { return static_cast<uint32_t>(engine_->words()); }

void Mt19937GeneratorImpl::set_current_seed(uint64_t seed) {
  GeneratorImpl::set_current_seed(seed);
  engine_->words.seed(static_cast<uint32_t>(seed));
  next_normal.reset();
}

void Mt19937GeneratorImpl::set_offset(uint64_t offset) {
  RUSH_CHECK_VALUE(offset == 0, "Generator: libtorch's stream has no offsets, got ", offset);
}

PhiloxState Mt19937GeneratorImpl::reserve(uint64_t /*increments*/) { return {random64(), 0}; }

std::vector<uint8_t> Mt19937GeneratorImpl::get_state() const {
  std::ostringstream text;
  text << current_seed() << ' ' << next_normal.has_value() << ' ' << std::bit_cast<uint64_t>(next_normal.value_or(0))
       << ' ' << engine_->words;
  const std::string state = text.str();
  return {state.begin(), state.end()};
}

void Mt19937GeneratorImpl::set_state(const std::vector<uint8_t>& state) {
  std::istringstream text(std::string(state.begin(), state.end()));
  uint64_t seed = 0, normal = 0;
  bool has_normal = false;
  std::mt19937 engine;
  text >> seed >> has_normal >> normal >> engine;
  RUSH_CHECK_VALUE(!text.fail(), "Generator: expected a state of libtorch's stream, as get_state returns it");
  GeneratorImpl::set_current_seed(seed);
  engine_->words = engine;
  next_normal = has_normal ? std::optional(std::bit_cast<double>(normal)) : std::nullopt;
}

intrusive_ptr<GeneratorImpl> Mt19937GeneratorImpl::clone() const {
  auto copy = make_intrusive<Mt19937GeneratorImpl>(current_seed());
  *copy->engine_ = *engine_;
  copy->next_normal = next_normal;
  return copy;
}

}  // namespace rush
