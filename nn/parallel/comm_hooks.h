// Communication hooks: how a bucket of gradients comes to its mean over processes.
#pragma once
#include <functional>
#include <vector>

#include "core/distributed/process_group.h"

namespace rush::nn::parallel {

/// One bucket of gradients: Note [Gradient buckets]. It is used during the hook's call alone; its tensors may be kept.
/// torch.distributed.GradBucket.
struct GradBucket {
  const Tensor& buffer;                  // (elements), all gradients one after the other, and zeros behind them
  const std::vector<Tensor>& gradients;  // views of it, of the parameters' shapes
  size_t index;                          // of the backward pass's buckets, from 0 on
  bool is_last;
};

/// Begins to bring a bucket to its mean over the group's processes; the mean stands in the buffer when the Work has
/// been waited for.
using CommHook = std::function<distributed::WorkPtr(const GradBucket& bucket, const distributed::Group& group)>;

/// Gradients travel in their own dtype. torch's allreduce_hook.
distributed::WorkPtr allreduce_hook(const GradBucket& bucket, const distributed::Group& group);
/// Gradients travel as bfloat16, in half of float32's bytes, and are added up in float32. torch's bf16_compress_hook.
distributed::WorkPtr bf16_compress_hook(const GradBucket& bucket, const distributed::Group& group);
/// The same as float16: of a narrower range, with three bits more. torch's fp16_compress_hook.
distributed::WorkPtr fp16_compress_hook(const GradBucket& bucket, const distributed::Group& group);

}  // namespace rush::nn::parallel
