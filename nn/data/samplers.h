// Samplers decide which examples make up the next batch.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/device/generator.h"
#include "nn/state/archive.h"
#include "nn/state/state_dict.h"

namespace rush::data::samplers {

/// Decides which examples make up each batch of an epoch.
template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  /// Starts a new epoch, over `new_size` examples if that is given.
  virtual void reset(std::optional<size_t> new_size = std::nullopt) = 0;
  /// The indices of at most batch_size examples; nothing at the end of the epoch.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
  /// Names the values that make up the sampler's position in its epoch, see Note [State dicts].
  virtual void visit(StateFields&) {
    RUSH_THROW(NotImplementedError, "Sampler: this sampler has no state dict, because it does not override visit");
  }

  /// The place in the epoch.
  StateDict state_dict() { return saved_state(*this); }
  /// Goes on from that place. Throws ValueError, and changes nothing, if the dict does not fit this sampler.
  void load_state_dict(const StateDict& dict) { load_state(*this, dict, "Sampler::load_state_dict"); }
  /// The same in an archive.
  virtual void save(serialize::OutputArchive& archive) const {
    serialize::save_state(archive, const_cast<Sampler*>(this)->state_dict());
  }
  virtual void load(serialize::InputArchive& archive) { load_state_dict(serialize::load_state(archive)); }
};

/// Each example once, in order.
class SequentialSampler final : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void visit(StateFields& fields) override;
  /// How many examples of this epoch were given out.
  size_t index() const noexcept { return index_; }

 private:
  size_t size_;
  size_t index_ = 0;
};

/// Each example once, in a new random order for every epoch: from `generator`, by default from the CPU's default one,
/// so that manual_seed fixes it. The state dict holds what the order is drawn from, and the generator's state if it is
/// not the default one.
class RandomSampler final : public Sampler<> {
 public:
  explicit RandomSampler(size_t size, Generator generator = {});
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void visit(StateFields& fields) override;
  size_t index() const noexcept { return index_; }  // examples of the epoch that were drawn

 private:
  Generator generator_;
  PhiloxState position_{};  // where the order was drawn
  Generator drawn_from_;    // a copy of libtorch's generator before it drew the order; its stream has no positions
  std::vector<size_t> order_;
  size_t index_ = 0;

  const Generator& generator() const { return generator_.defined() ? generator_ : default_generator(); }
};

/// What is asked of a dataset that is not asked for particular examples.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  /// How many examples it asks for.
  virtual size_t size() const = 0;
};

/// So many examples, whichever.
struct BatchSize final : CustomBatchRequest {
  explicit BatchSize(size_t size = 0) : size_(size) {}
  size_t size() const noexcept override { return size_; }
  operator size_t() const noexcept { return size_; }  // size()
  size_t size_;
};

/// For streams: says only how many examples the next batch has, until an epoch's number of them is reached.
class StreamSampler final : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<BatchSize> next(size_t batch_size) override;
  void visit(StateFields& fields) override;

 private:
  size_t examples_retrieved_so_far_ = 0;
  size_t epoch_size_;
};

namespace detail {
// A permutation of 0 ... size - 1, drawn from one subsequence of the stream at `position`: 2 words for each number.
std::vector<size_t> permutation(size_t size, const PhiloxState& position);
// The part of `order` from `index` on, of at most `count`; moves `index` past it. Nothing at `end`.
std::optional<std::vector<size_t>> take(const std::vector<size_t>& order, size_t& index, size_t end, size_t count);
}  // namespace detail

}  // namespace rush::data::samplers
