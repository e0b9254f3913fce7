// The kernels that combine, move and order elements, a function a file.
#pragma once

namespace rush::cuda {

// Calls all below.
void register_reductions();

// The families, in the order in which they register.
// clang-format off
#define RUSH_FORALL_CUDA_REDUCTIONS(X)                                                                                 \
  X(register_add_layer_norm) X(register_add_layer_norm_backward) X(register_attention) X(register_batch_norm)          \
  X(register_cross_entropy) X(register_embedding_bag) X(register_extrema) X(register_extreme_index)                    \
  X(register_gather) X(register_grid_sampler) X(register_group_norm) X(register_histogram) X(register_index)           \
  X(register_layer_norm)                                                                                               \
  X(register_layer_norm_backward) X(register_linalg) X(register_nll_loss) X(register_order_statistics)                 \
  X(register_pool) X(register_reduce) X(register_reduce_count) X(register_repeat_interleave) X(register_scan)          \
  X(register_scan_extreme) X(register_search) X(register_softmax) X(register_softmax_backward) X(register_sort)        \
  X(register_statistics) X(register_unique) X(register_vector_norm)
// clang-format on
#define RUSH_DECLARE(function) void function();
RUSH_FORALL_CUDA_REDUCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE

}  // namespace rush::cuda
