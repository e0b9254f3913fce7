// Samplers for training on several machines or devices, each of which goes through a part of the examples.
#pragma once
#include "nn/data/samplers.h"

namespace rush::data::samplers {

/// Of `num_replicas` programs, this is number `rank`. All take equally many examples: with `allow_duplicates`, the
/// first examples serve again to make up the number, otherwise the last are left out.
template <class BatchRequest = std::vector<size_t>>
class DistributedSampler : public Sampler<BatchRequest> {
 public:
  /// Throws ValueError unless rank < num_replicas.
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true)
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
    RUSH_CHECK_VALUE(rank < num_replicas, "DistributedSampler: expected a rank below the number of replicas, got rank ",
                     rank, " of ", num_replicas);
  }

  /// The epoch that the next reset starts. The same on every replica.
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }

 protected:
  size_t local_sample_count() const { return (size_ + (allow_duplicates_ ? num_replicas_ - 1 : 0)) / num_replicas_; }

  size_t size_, num_replicas_, rank_, epoch_ = 0;
  bool allow_duplicates_;
};

namespace detail {

// Both samplers below: an order of the examples that every replica computes alike, of which each takes a block.
class BlockSampler : public DistributedSampler<> {
 public:
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void visit(StateFields& fields) override;
  // How far this replica is, in the order of all replicas' examples.
  size_t index() const noexcept { return sample_index_; }

 protected:
  using DistributedSampler<>::DistributedSampler;
  // A permutation of 0 ... count - 1, for this epoch.
  virtual std::vector<size_t> order(size_t epoch, size_t count) const = 0;

 private:
  void order_indices();

  size_t started_epoch_ = 0;  // set_epoch may have named the next one since
  size_t begin_index_ = 0, end_index_ = 0, sample_index_ = 0;
  std::vector<size_t> all_indices_;
};

}  // namespace detail

/// In an order drawn for each epoch: set_epoch before each reset, or the order is the same again. It depends on nothing
/// but the epoch and the number of examples, so that all replicas draw the same.
class DistributedRandomSampler final : public detail::BlockSampler {
 public:
  explicit DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                    bool allow_duplicates = true);

 private:
  std::vector<size_t> order(size_t epoch, size_t count) const override;
};

/// In order: replica 0 takes the first block.
class DistributedSequentialSampler final : public detail::BlockSampler {
 public:
  explicit DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                        bool allow_duplicates = true);

 private:
  std::vector<size_t> order(size_t epoch, size_t count) const override;
};

}  // namespace rush::data::samplers
