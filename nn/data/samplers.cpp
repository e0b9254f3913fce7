#include "nn/data/samplers.h"

#include <algorithm>
#include <numeric>

namespace rush::data::samplers {

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

void SequentialSampler::check_epoch(const std::vector<int64_t>& epoch) const {
  RUSH_CHECK_VALUE(epoch == this->epoch(), "SequentialSampler: the epoch was one of other examples than these ", size_);
}

void SequentialSampler::restore_epoch(const std::vector<int64_t>& epoch) {
  check_epoch(epoch);
  index_ = 0;
}

std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  if (index_ >= size_) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  std::iota(batch.begin(), batch.end(), index_);
  index_ += batch.size();
  return batch;
}

RandomSampler::RandomSampler(size_t size, Generator generator) : generator_(std::move(generator)), order_(size) {
  RandomSampler::reset();
}

void RandomSampler::reset(std::optional<size_t> new_size) {
  order_.resize(new_size.value_or(order_.size()));
  const Generator& generator = generator_.defined() ? generator_ : default_generator();
  drawn_from_ = generator.reserve(2 * order_.size());
  shuffle();
}

// Fisher and Yates's shuffle. Each draw takes 64 bits of one subsequence, see Note [One random stream].
void RandomSampler::shuffle() {
  std::iota(order_.begin(), order_.end(), size_t{0});
  index_ = 0;
  Philox4x32 words = philox_sequence(drawn_from_, 0);
  for (size_t i = order_.size(); i > 1; --i) {
    const uint32_t upper = words();
    std::swap(order_[i - 1], order_[join_words(upper, words()) % i]);
  }
}

std::vector<int64_t> RandomSampler::epoch() const {
  return {static_cast<int64_t>(order_.size()), static_cast<int64_t>(drawn_from_.seed),
          static_cast<int64_t>(drawn_from_.offset)};
}

void RandomSampler::check_epoch(const std::vector<int64_t>& epoch) const {
  RUSH_CHECK_VALUE(epoch.size() == 3 && epoch[0] == static_cast<int64_t>(order_.size()) && epoch[2] % 4 == 0,
                   "RandomSampler: the epoch was one of other examples than these ", order_.size());
}

void RandomSampler::restore_epoch(const std::vector<int64_t>& epoch) {
  check_epoch(epoch);
  drawn_from_ = {static_cast<uint64_t>(epoch[1]), static_cast<uint64_t>(epoch[2])};
  shuffle();
}

std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  if (index_ >= order_.size()) return std::nullopt;
  const size_t end = std::min(index_ + batch_size, order_.size());
  std::vector<size_t> batch(order_.begin() + static_cast<std::ptrdiff_t>(index_),
                            order_.begin() + static_cast<std::ptrdiff_t>(end));
  index_ = end;
  return batch;
}

}  // namespace rush::data::samplers
