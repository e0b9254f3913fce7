#pragma once
#include <concepts>
#include <functional>
#include <optional>

#include "core/tensor.h"
#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

using reduction_t = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

namespace detail {
// What all options of losses have.
struct LossOptions {
  using reduction_t = nn::reduction_t;
};
}  // namespace detail

/// Options with nothing but the reduction; made from it as well: MSELossOptions(kSum).
struct ReductionOptions : detail::LossOptions {
  ReductionOptions() = default;
  ReductionOptions(std::convertible_to<reduction_t> auto reduction) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction) = kMean;
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
using SoftMarginLossOptions = ReductionOptions;

/// Targets of class ignore_index count for nothing. label_smoothing: the share of the target that all classes divide.
struct CrossEntropyLossOptions : detail::LossOptions {
  // A weight for each class.
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(int64_t, ignore_index) = -100;
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(double, label_smoothing) = 0.0;
};

/// A weight for each class. Targets of class ignore_index count for nothing.
struct NLLLossOptions : detail::LossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(int64_t, ignore_index) = -100;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// weight: a factor of each element's loss; it is broadcast.
struct BCELossOptions : detail::LossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// As BCELossOptions; pos_weight: a factor of the losses of positive targets, for each class.
struct BCEWithLogitsLossOptions : detail::LossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(Tensor, pos_weight);
};

/// beta: the difference at which squares end and absolute values begin.
struct SmoothL1LossOptions : detail::LossOptions {
  SmoothL1LossOptions() = default;
  SmoothL1LossOptions(std::convertible_to<reduction_t> auto reduction) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction) = kMean;
  // Default: 1.
  RUSH_ARG(std::optional<double>, beta) = std::nullopt;
};

/// delta: the difference at which squares end and absolute values begin.
struct HuberLossOptions : detail::LossOptions {
  HuberLossOptions() = default;
  HuberLossOptions(std::convertible_to<reduction_t> auto reduction) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(double, delta) = 1.0;
};

/// kBatchMean: the sum, divided by the batch's size. log_target: the target holds logarithms.
struct KLDivLossOptions {
  using reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions() = default;
  KLDivLossOptions(std::convertible_to<reduction_t> auto reduction) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(bool, log_target) = false;
};

/// eps: what is added to a rate before its logarithm.
struct PoissonNLLLossOptions : detail::LossOptions {
  // Whether the input is the logarithm of the rate.
  RUSH_ARG(bool, log_input) = true;
  // Whether Stirling's approximation of log(target!) is added.
  RUSH_ARG(bool, full) = false;
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// torch.nn.GaussianNLLLoss, which libtorch does not have.
struct GaussianNLLLossOptions : detail::LossOptions {
  // Whether the constant log(2 pi) / 2 is added.
  RUSH_ARG(bool, full) = false;
  // The least variance.
  RUSH_ARG(double, eps) = 1e-6;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// kMean: each loss is divided by its target's length before the mean over the batch.
struct CTCLossOptions : detail::LossOptions {
  // The class that stands for no label.
  RUSH_ARG(int64_t, blank) = 0;
  RUSH_ARG(reduction_t, reduction) = kMean;
  // Whether infinite losses, of targets longer than their inputs allow, and their gradients become zero.
  RUSH_ARG(bool, zero_infinity) = false;
};

/// margin: what inputs with target -1 have to exceed.
struct HingeEmbeddingLossOptions : detail::LossOptions {
  RUSH_ARG(double, margin) = 1.0;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// margin: by how much the right input has to be larger.
struct MarginRankingLossOptions : detail::LossOptions {
  RUSH_ARG(double, margin) = 0.0;
  RUSH_ARG(reduction_t, reduction) = kMean;
};
/// margin: what the cosine of inputs with target -1 may be.
struct CosineEmbeddingLossOptions : detail::LossOptions {
  RUSH_ARG(double, margin) = 0.0;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// margin: by how much the target's input has to be larger. weight: one for each class.
struct MultiMarginLossOptions : detail::LossOptions {
  // 1 or 2.
  RUSH_ARG(int64_t, p) = 1;
  RUSH_ARG(double, margin) = 1.0;
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction) = kMean;
};

using MultiLabelMarginLossOptions = ReductionOptions;

/// weight: one for each class.
struct MultiLabelSoftMarginLossOptions : detail::LossOptions {
  MultiLabelSoftMarginLossOptions(Tensor weight = {}, reduction_t reduction = kMean)
      : weight_(std::move(weight)), reduction_(reduction) {}
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction);
};

/// margin: by how much the negative has to be further away. p and eps: those of pairwise_distance.
struct TripletMarginLossOptions : detail::LossOptions {
  RUSH_ARG(double, margin) = 1.0;
  RUSH_ARG(double, p) = 2.0;
  RUSH_ARG(double, eps) = 1e-6;
  // Whether the negative is compared with the positive too, and the smaller distance counts.
  RUSH_ARG(bool, swap) = false;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

/// As TripletMarginLossOptions, with any distance.
struct TripletMarginWithDistanceLossOptions : detail::LossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  // Default: the Euclidean distance.
  RUSH_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  RUSH_ARG(double, margin) = 1.0;
  RUSH_ARG(bool, swap) = false;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

namespace functional {
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using GaussianNLLLossFuncOptions = GaussianNLLLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
}  // namespace functional

}  // namespace rush::nn
