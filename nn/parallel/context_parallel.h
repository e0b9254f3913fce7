// Context parallelism: attention over sequences of which each process has a part.
#pragma once
#include <optional>

#include "core/distributed/process_group.h"

namespace rush::nn::parallel {

// Note [Ring attention]
// (https://arxiv.org/abs/2310.01889.) Each process has the queries, keys and values of some positions. Keys and values
// travel in a ring: in each of as many steps as there are processes, a process computes the attention of its queries to
// the keys that it has, and meanwhile sends them on and gets the next. With the logarithm of each row's sum of
// exponentials (LSE), results of several sets of keys are brought together as if one softmax had seen all:
//
//   LSE = log(exp(LSE_1) + exp(LSE_2)),  O = O_1 exp(LSE_1 - LSE) + O_2 exp(LSE_2 - LSE)
//
// The backward pass goes around once more, with O and LSE of all keys, so that each step's gradients are summands of
// the whole ones; those of keys and values travel with them and come home after the last step. No process ever has
// more than two processes' keys, and the memory for a sequence is divided by their number.
//
// Causal attention would leave the process of the first positions idle. So the sequence is cut into 2 N chunks, and
// process r has chunks r and 2 N - 1 - r (the zigzag): then each has, in each step, half of a square of scores to
// compute.

/// This process's positions of a sequence, in the order in which it has them: chunks r and 2 N - 1 - r in dimension
/// `dim` of 2 N equal ones. For ids, targets and whatever belongs to positions. Throws ValueError where the length
/// cannot be divided so. Note [Ring attention].
Tensor context_part(const Tensor& whole, int64_t dim, const distributed::Group& group);
/// What has been divided by context_part, in the order of the sequence, on all processes. Not differentiable.
Tensor context_whole(const Tensor& part, int64_t dim, const distributed::Group& group);

/// scaled_dot_product_attention of sequences that lie as context_part says: query, key and value (B, H, T / processes,
/// D), of the same dtype, to the same shape. Without `is_causal`, they may be divided in any way. `scale` defaults to
/// 1 / sqrt(D). On a GPU, for float32 and 16 bits. Throws ValueError for other shapes, and NotImplementedError for
/// second derivatives. torch.distributed.tensor.experimental.context_parallel.
Tensor ring_attention(const Tensor& query, const Tensor& key, const Tensor& value, const distributed::Group& group,
                      bool is_causal = false, std::optional<double> scale = std::nullopt);

}  // namespace rush::nn::parallel
