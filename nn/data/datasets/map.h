// A dataset with a transform applied to each of its batches.
#pragma once
#include "nn/data/datasets/base.h"
#include "nn/state/state_dict.h"

namespace rush::data::datasets {

namespace detail {
// What the transformed dataset gives: an optional where the source does.
template <class SourceDataset, class AppliedTransform>
using MappedBatch =
    std::conditional_t<SourceDataset::is_stateful, std::optional<typename AppliedTransform::OutputBatchType>,
                       typename AppliedTransform::OutputBatchType>;
}  // namespace detail

/// What dataset.map(transform) returns: its batches are those of the dataset, transformed.
template <class SourceDataset, class AppliedTransform>
class MapDataset final : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>,
                                             detail::MappedBatch<SourceDataset, AppliedTransform>,
                                             typename SourceDataset::BatchRequestType> {
  static_assert(std::is_same_v<UnwrappedBatch<SourceDataset>, typename AppliedTransform::InputBatchType>,
                "the transform takes other batches than the dataset gives");

 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using OutputBatchType = detail::MappedBatch<SourceDataset, AppliedTransform>;

  MapDataset(SourceDataset dataset, AppliedTransform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  OutputBatchType get_batch(typename SourceDataset::BatchRequestType request) override {
    if constexpr (SourceDataset::is_stateful) {
      auto batch = dataset_.get_batch(std::move(request));
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(request)));
    }
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  // For a stateful source: starts its next epoch, and names its position.
  void reset() requires(SourceDataset::is_stateful) { dataset_.reset(); }
  void visit(StateFields& fields) requires(SourceDataset::is_stateful) { dataset_.visit(fields); }
  const SourceDataset& dataset() const noexcept { return dataset_; }         // the source
  const AppliedTransform& transform() const noexcept { return transform_; }  // the one that was given

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

/// As dataset.map(transform).
template <class SourceDataset, class AppliedTransform>
MapDataset<SourceDataset, AppliedTransform> map(SourceDataset dataset, AppliedTransform transform) {
  return {std::move(dataset), std::move(transform)};
}

}  // namespace rush::data::datasets
