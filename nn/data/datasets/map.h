// A dataset with a transform applied to each of its batches.
#pragma once
#include "nn/data/datasets/base.h"

namespace rush::data::datasets {

template <class SourceDataset, class AppliedTransform>
class MapDataset final
    : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>, typename AppliedTransform::OutputBatchType,
                          typename SourceDataset::BatchRequestType> {
  static_assert(std::is_same_v<typename SourceDataset::BatchType, typename AppliedTransform::InputBatchType>,
                "the transform takes other batches than the dataset gives");

 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using OutputBatchType = typename AppliedTransform::OutputBatchType;

  MapDataset(SourceDataset dataset, AppliedTransform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  OutputBatchType get_batch(typename SourceDataset::BatchRequestType indices) override {
    return transform_.apply_batch(dataset_.get_batch(std::move(indices)));
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  const SourceDataset& dataset() const noexcept { return dataset_; }
  const AppliedTransform& transform() const noexcept { return transform_; }

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

}  // namespace rush::data::datasets
