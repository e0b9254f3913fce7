#include "nn/data/distributed_samplers.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace rush::data::samplers {

namespace detail {

void BlockSampler::order_indices() {
  const size_t local = local_sample_count();
  all_indices_ = order(started_epoch_, local * num_replicas_);
  for (size_t& index : all_indices_) index %= size_;  // beyond the last example, the first again
  begin_index_ = rank_ * local;
  end_index_ = begin_index_ + local;
}

void BlockSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  started_epoch_ = epoch_;
  order_indices();
  sample_index_ = begin_index_;
}

std::optional<std::vector<size_t>> BlockSampler::next(size_t batch_size) {
  return take(all_indices_, sample_index_, end_index_, batch_size);
}

void BlockSampler::visit(StateFields& fields) {
  fields.given("size", size_);
  fields.given("num_replicas", num_replicas_);
  fields.given("rank", rank_);
  fields.count("epoch", started_epoch_);
  size_t taken = sample_index_ - begin_index_;
  fields.count("index", taken, local_sample_count());
  if (!fields.reading()) return;
  epoch_ = started_epoch_;
  order_indices();
  sample_index_ = begin_index_ + taken;
}

}  // namespace detail

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates)
    : BlockSampler(size, num_replicas, rank, allow_duplicates) {
  reset();
}

std::vector<size_t> DistributedRandomSampler::order(size_t epoch, size_t count) const {
  if (!default_generator().mt19937()) return detail::permutation(count, PhiloxState{epoch, 0});
  // libtorch's order; all replicas have the same standard library.
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(epoch)));
  return order;
}

DistributedSequentialSampler::DistributedSequentialSampler(size_t size, size_t num_replicas, size_t rank,
                                                           bool allow_duplicates)
    : BlockSampler(size, num_replicas, rank, allow_duplicates) {
  reset();
}

std::vector<size_t> DistributedSequentialSampler::order(size_t, size_t count) const {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

}  // namespace rush::data::samplers
