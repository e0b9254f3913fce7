#include "core/ops/index/embedding_bag.h"

#include "core/ops/factory/factories.h"
#include "core/ops/index/embedding_indices.h"
#include "core/ops/index/index.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

namespace {

constexpr const char* kOp = "embedding_bag";

void check_bag_arguments(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
                         BagMode mode, const std::optional<Tensor>& per_sample_weights, bool include_last_offset) {
  RUSH_CHECK_VALUE(weight.dim() == 2, kOp, ": expected a table of two dimensions, got shape ", weight.sizes());
  RUSH_CHECK_TYPE(weight.is_floating_point(), kOp, ": expected a floating point table, got ", weight.scalar_type());
  RUSH_CHECK_VALUE(indices.dim() == 1 && offsets.dim() == 1, kOp,
                   ": expected indices and offsets of one dimension, got shapes ", indices.sizes(), " and ",
                   offsets.sizes());
  RUSH_CHECK_VALUE(!include_last_offset || offsets.size(0) > 0, kOp, ": include_last_offset needs at least one offset");
  RUSH_CHECK_VALUE(mode == BagMode::Sum || mode == BagMode::Mean || mode == BagMode::Max, kOp, ": unknown mode ",
                   static_cast<int64_t>(mode));
  RUSH_CHECK_VALUE(!scale_grad_by_freq || mode != BagMode::Max, kOp,
                   ": the gradient of a maximum cannot be scaled by frequency");
  if (!per_sample_weights || !per_sample_weights->defined()) return;
  RUSH_CHECK_VALUE(mode == BagMode::Sum, kOp, ": per_sample_weights go with sums only");
  RUSH_CHECK_VALUE(per_sample_weights->sizes() == indices.sizes(), kOp, ": per_sample_weights of shape ",
                   per_sample_weights->sizes(), " do not match indices of shape ", indices.sizes());
  RUSH_CHECK_TYPE(per_sample_weights->scalar_type() == weight.scalar_type(), kOp, ": expected per_sample_weights of ",
                  weight.scalar_type(), ", got ", per_sample_weights->scalar_type());
}

int64_t wrap_padding(std::optional<int64_t> padding_idx, int64_t rows) {
  if (!padding_idx) return -1;
  RUSH_CHECK_INDEX(*padding_idx >= -rows && *padding_idx < rows, kOp, ": padding_idx ", *padding_idx,
                   " is out of bounds for ", rows, " rows");
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_padding_idx(const Tensor& weight, const Tensor& indices,
                                                                     const Tensor& offsets, bool scale_grad_by_freq,
                                                                     int64_t mode_number, bool /*sparse*/,
                                                                     const std::optional<Tensor>& per_sample_weights,
                                                                     bool include_last_offset,
                                                                     std::optional<int64_t> padding_idx) {
  const auto mode = static_cast<BagMode>(mode_number);
  check_bag_arguments(weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset);
  const Device device = weight.device();
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  const auto integers = [&](IntArrayRef sizes) { return detail::empty_contiguous(sizes, kInt64, device); };
  EmbeddingBags call;
  call.mode = mode;
  call.padding = wrap_padding(padding_idx, weight.size(0));
  call.weight = contiguous(weight);
  call.indices = contiguous(embedding_indices(indices, "indices", device, kOp));
  call.offsets = contiguous(embedding_indices(offsets, "offsets", device, kOp));
  if (per_sample_weights && per_sample_weights->defined()) call.per_sample_weights = contiguous(*per_sample_weights);
  call.output = detail::empty_contiguous({bags, weight.size(1)}, weight.scalar_type(), device);
  // What the derivative does not need takes the shapes and values that PyTorch gives it.
  const bool recorded = weight.requires_grad() || (per_sample_weights && per_sample_weights->requires_grad());
  const bool plain_sum = mode == BagMode::Sum && call.padding < 0 && weight.scalar_type() != kFloat64 && !recorded;
  const int64_t counts = mode == BagMode::Sum && !recorded ? offsets.size(0) : bags;
  const auto sizes = [&] {
    return counts == bags ? integers({bags}) : zeros({counts}, TensorOptions(kInt64).device(device));
  };
  call.bag_of_index = integers({plain_sum ? 0 : indices.size(0)});
  call.sizes = sizes();
  call.maxima = mode == BagMode::Max ? integers({bags, weight.size(1)}) : sizes();
  kernels::embedding_bag(device.type, call);
  const ScalarType type = promote_types(indices.scalar_type(), offsets.scalar_type());
  return {call.output, call.bag_of_index.to(type), call.sizes.to(type), call.maxima.to(type)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                                                         bool sparse, const std::optional<Tensor>& per_sample_weights,
                                                         bool include_last_offset) {
  return ops::embedding_bag_padding_idx(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                        include_last_offset, std::nullopt);
}

}  // namespace

}  // namespace native

void register_embedding_bag_ops(Registry& r) {
  r.native(ops::embedding_bag_padding_idx, native::embedding_bag_padding_idx);
  r.composite(ops::embedding_bag, native::embedding_bag);
}

}  // namespace rush
