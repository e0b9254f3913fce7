#pragma once
#include <optional>

#include "core/tensor.h"
#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

using reduction_t = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

// Options with nothing but the reduction; made from it as well: MSELossOptions(kSum).
struct ReductionOptions {
  ReductionOptions(reduction_t reduction = kMean) : reduction_(reduction) {}
  ReductionOptions(enumtype::kNone) : reduction_(kNone) {}
  ReductionOptions(enumtype::kMean) : reduction_(kMean) {}
  ReductionOptions(enumtype::kSum) : reduction_(kSum) {}
  RUSH_ARG(reduction_t, reduction);
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
using SoftMarginLossOptions = ReductionOptions;

struct CrossEntropyLossOptions {
  // A weight for each class.
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(int64_t, ignore_index) = -100;
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(double, label_smoothing) = 0.0;
};

struct NLLLossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(int64_t, ignore_index) = -100;
  RUSH_ARG(reduction_t, reduction) = kMean;
};

struct BCELossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction) = kMean;
};

struct BCEWithLogitsLossOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(reduction_t, reduction) = kMean;
  RUSH_ARG(Tensor, pos_weight);
};

struct SmoothL1LossOptions {
  SmoothL1LossOptions(reduction_t reduction = kMean) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction);
  // Default: 1.
  RUSH_ARG(std::optional<double>, beta) = std::nullopt;
};

struct HuberLossOptions {
  HuberLossOptions(reduction_t reduction = kMean) : reduction_(reduction) {}
  RUSH_ARG(reduction_t, reduction);
  RUSH_ARG(double, delta) = 1.0;
};

struct KLDivLossOptions {
  using kl_reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions(kl_reduction_t reduction = kMean) : reduction_(reduction) {}
  RUSH_ARG(kl_reduction_t, reduction);
  RUSH_ARG(bool, log_target) = false;
};

namespace functional {
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
