// The bases of datasets. Derive from Dataset and write `get` and `size`; or from BatchDataset, to load many at once.
#pragma once
#include <optional>
#include <type_traits>
#include <vector>

#include "core/array_ref.h"
#include "nn/data/example.h"
#include "nn/data/worker_info.h"

namespace rush::data::datasets {

template <class SourceDataset, class AppliedTransform>
class MapDataset;

namespace detail {
template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};
}  // namespace detail

/// A dataset's batch. A stateful dataset's get_batch gives an optional of it, which is empty at the end of the epoch.
template <class DatasetType>
using UnwrappedBatch = typename detail::Unwrapped<typename DatasetType::BatchType>::Type;

/// A dataset is a value: every worker thread of a DataLoader has a copy. Tensors in it are shared; what copies cannot
/// share goes into a SharedBatchDataset.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = !std::is_same_v<Batch, typename detail::Unwrapped<Batch>::Type>;

  virtual ~BatchDataset() = default;
  /// The examples of a batch, by index.
  virtual Batch get_batch(BatchRequest request) = 0;
  /// How many examples there are; nothing when that is not known.
  virtual std::optional<size_t> size() const = 0;

  /// This dataset with a transform applied to every batch: dataset.map(Normalize<>(mean, std)).map(Stack<>()).
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) && {
    return {static_cast<Self&&>(*this), std::move(transform)};
  }
};

/// One example at a time: derive from it, and write `get` and `size`.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;

  virtual ExampleType get(size_t index) = 0;  // the example with this number
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (size_t index : indices) {
      data::detail::note_index(index);
      batch.push_back(get(index));
    }
    data::detail::note_index(std::nullopt);  // what a transform throws is not about the last of them
    return batch;
  }
};

/// Asked for a number of examples, not for particular ones: use it with a StreamSampler. A worker's copy does not know
/// which examples the others have given.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

}  // namespace rush::data::datasets

#include "nn/data/datasets/map.h"
