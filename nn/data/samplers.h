// Samplers decide which examples make up the next batch.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/generator.h"

namespace rush::data::samplers {

template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  // Starts a new epoch, over `new_size` examples if that is given.
  virtual void reset(std::optional<size_t> new_size = std::nullopt) = 0;
  // The indices of at most batch_size examples; nothing at the end of the epoch.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
};

// Note [Samplers that go on]
// What decides the order of an epoch is a few numbers: `epoch()` gives them, and `restore_epoch` begins that epoch
// again without drawing from a generator. A DataLoader then passes over the batches that it delivered already.
// `check_epoch` throws ValueError for numbers that no sampler of this size gave.

// Each example once, in order.
class SequentialSampler final : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  // How many examples of this epoch were given out.
  size_t index() const noexcept { return index_; }
  std::vector<int64_t> epoch() const { return {static_cast<int64_t>(size_)}; }
  void check_epoch(const std::vector<int64_t>& epoch) const;
  void restore_epoch(const std::vector<int64_t>& epoch);

 private:
  size_t size_;
  size_t index_ = 0;
};

// Each example once, in an order that every epoch draws anew: from `generator`, by default from the CPU's default one,
// so that manual_seed fixes it.
class RandomSampler final : public Sampler<> {
 public:
  explicit RandomSampler(size_t size, Generator generator = {});
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const noexcept { return index_; }
  std::vector<int64_t> epoch() const;
  void check_epoch(const std::vector<int64_t>& epoch) const;
  void restore_epoch(const std::vector<int64_t>& epoch);

 private:
  void shuffle();

  Generator generator_;
  PhiloxState drawn_from_{};  // where in the random stream this epoch's order comes from
  std::vector<size_t> order_;
  size_t index_ = 0;
};

}  // namespace rush::data::samplers
