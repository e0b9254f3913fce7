#include "nn/data/samplers.h"

#include <algorithm>
#include <numeric>

#include "core/ops/random/random_factories.h"

namespace rush::data::samplers {

namespace detail {

std::vector<size_t> permutation(size_t size, const PhiloxState& position) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  // Fisher and Yates's shuffle. Each draw takes 64 bits of one subsequence, see Note [One random stream].
  Philox4x32 words = philox_sequence(position, 0);
  for (size_t i = size; i > 1; --i) {
    const uint32_t upper = words();
    std::swap(order[i - 1], order[join_words(upper, words()) % i]);
  }
  return order;
}

std::optional<std::vector<size_t>> take(const std::vector<size_t>& order, size_t& index, size_t end, size_t count) {
  if (index >= end) return std::nullopt;
  const size_t begin = index;
  index += std::min(count, end - begin);
  return std::vector<size_t>(order.begin() + static_cast<std::ptrdiff_t>(begin),
                             order.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace detail

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  if (index_ >= size_) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  std::iota(batch.begin(), batch.end(), index_);
  index_ += batch.size();
  return batch;
}

void SequentialSampler::visit(StateFields& fields) {
  fields.given("size", size_);
  fields.count("index", index_, size_);
}

namespace {

// As torch::randperm draws it.
std::vector<size_t> libtorch_permutation(size_t size, const Generator& generator) {
  const Tensor order = randperm(static_cast<int64_t>(size), generator);
  const auto* first = order.data_ptr<int64_t>();
  return std::vector<size_t>(first, first + size);
}

void visit_state(StateFields& fields, const char* name, Generator& generator) {
  const std::vector<uint8_t> bytes = generator.get_state();
  std::vector<int64_t> numbers(bytes.begin(), bytes.end());
  fields(name, numbers);
  if (!fields.reading()) return;
  try {
    generator.set_state(std::vector<uint8_t>(numbers.begin(), numbers.end()));
  } catch (const ValueError& error) {
    fields.problem(name, error.what());
  }
}

}  // namespace

RandomSampler::RandomSampler(size_t size, Generator generator) : generator_(std::move(generator)), order_(size) {
  RandomSampler::reset();
}

void RandomSampler::reset(std::optional<size_t> new_size) {
  const size_t size = new_size.value_or(order_.size());
  if (generator().mt19937()) {
    drawn_from_ = generator().clone();
    order_ = libtorch_permutation(size, generator());
  } else {
    position_ = generator().reserve(2 * size);
    order_ = detail::permutation(size, position_);
  }
  index_ = 0;
}

std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  return detail::take(order_, index_, order_.size(), batch_size);
}

void RandomSampler::visit(StateFields& fields) {
  fields.given("size", order_.size());
  fields.count("index", index_, order_.size());
  if (generator().mt19937()) {
    if (fields.reading()) drawn_from_ = drawn_from_.clone();  // copies of this sampler share the other
    visit_state(fields, "order.state", drawn_from_);
    if (generator_.defined()) visit_state(fields, "generator.state", generator_);
    if (fields.reading()) order_ = libtorch_permutation(order_.size(), drawn_from_.clone());
    return;
  }
  fields("order.seed", position_.seed);
  fields("order.offset", position_.offset);
  if (generator_.defined()) {
    uint64_t seed = generator_.current_seed(), offset = generator_.get_offset();
    fields("generator.seed", seed);
    fields("generator.offset", offset);
    if (fields.reading()) {
      generator_.set_current_seed(seed);
      generator_.set_offset(offset);
    }
  }
  if (fields.reading()) order_ = detail::permutation(order_.size(), position_);
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  examples_retrieved_so_far_ = 0;
}

std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  if (examples_retrieved_so_far_ >= epoch_size_) return std::nullopt;
  const size_t size = std::min(batch_size, epoch_size_ - examples_retrieved_so_far_);
  examples_retrieved_so_far_ += size;
  return BatchSize(size);
}

void StreamSampler::visit(StateFields& fields) {
  fields.given("size", epoch_size_);
  fields.count("index", examples_retrieved_so_far_, epoch_size_);
}

}  // namespace rush::data::samplers
