// Datasets that decide themselves what comes next: records of a file, say, or of a network connection.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "nn/data/datasets/base.h"
#include "nn/state/archive.h"
#include "nn/state/state_dict.h"

namespace rush::data::datasets {

/// `get_batch` gives an optional<Batch>: nothing at the end of the epoch, and from then on until `reset`. A
/// DataLoader's workers share the dataset and call get_batch at the same time, so that several of them get the batches
/// in no particular order: enforce_ordering then keeps the order of the calls. One worker keeps the dataset's own.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  /// Starts an epoch. The loader calls it while no worker is in the dataset.
  virtual void reset() = 0;
  /// Names the values that make up the dataset's position in its epoch, see Note [State dicts]. What is read takes
  /// effect at once: a loader that resumes an epoch goes on with get_batch, without a reset.
  virtual void visit(StateFields&) {
    RUSH_THROW(NotImplementedError,
               "StatefulDataset: this dataset has no state dict, because it does not override "
               "visit");
  }

  StateDict state_dict() { return saved_state(*this); }  // what `visit` names
  /// Throws ValueError, and goes back to where it was, if the dict does not fit this dataset.
  void load_state_dict(const StateDict& dict) { load_state(*this, dict, "StatefulDataset::load_state_dict"); }
  /// The same in an archive.
  virtual void save(serialize::OutputArchive& archive) const {
    serialize::save_state(archive, const_cast<StatefulDataset*>(this)->state_dict());
  }
  virtual void load(serialize::InputArchive& archive) { load_state_dict(serialize::load_state(archive)); }
};

/// A dataset that gives one example after the other: derive from it and write `next` and `reset`. Mirrors
/// torch.utils.data.IterableDataset, except that workers share it, so that none has to skip what is another's.
template <class Self, class SingleExample = Example<>>
class IterableDataset : public StatefulDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;

  /// The next example; nothing at the end, however often it is called there. No two threads call it at once.
  virtual std::optional<ExampleType> next() = 0;

  std::optional<std::vector<ExampleType>> get_batch(size_t batch_size) override {
    const std::lock_guard<std::mutex> lock(*mutex_);
    std::vector<ExampleType> batch;
    while (batch.size() < batch_size) {
      std::optional<ExampleType> example = next();
      if (!example) break;
      batch.push_back(std::move(*example));
    }
    if (batch.empty()) return std::nullopt;
    return batch;
  }
  std::optional<size_t> size() const override { return std::nullopt; }

 private:
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();  // a pointer, for the dataset to be movable
};

}  // namespace rush::data::datasets
