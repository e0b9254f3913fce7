// The Autograd kernels, a file a family.
#pragma once
#include "autograd/derive.h"

namespace rush {

// Gives every differentiable operator its derivative.
void register_autograd(Registry& registry);

// One derivative for several operators: one and its in-place form, or those that differ in the forward pass alone.
template <class NodeT, auto&... ops>
void derive_all(Registry& registry, SourceLocation where = SourceLocation::current()) {
  (derive<ops, NodeT>(registry, where), ...);
}

// The families, in the order in which they register.
// clang-format off
#define RUSH_FORALL_DERIVATIVE_FAMILIES(X)                                                                             \
  X(register_activation_derivatives) X(register_binary_derivatives) X(register_collective_derivatives)                 \
  X(register_conv_derivatives) X(register_grid_sampler_derivatives)                                                    \
  X(register_im2col_derivatives) X(register_linear_derivatives) X(register_power_derivatives)                          \
  X(register_ternary_derivatives) X(register_distance_derivatives) X(register_linalg_derivatives)                      \
  X(register_decomposition_derivatives) X(register_attention_derivatives) X(register_fused_derivatives)                \
  X(register_copy_derivatives) X(register_ctc_loss_derivatives) X(register_cudnn_rnn_derivatives)                      \
  X(register_extrema_derivatives) X(register_fft_derivatives) X(register_loss_derivatives)                             \
  X(register_embedding_derivatives) X(register_sparse_derivatives) X(register_join_derivatives)                        \
  X(register_gather_derivatives) X(register_index_derivatives) X(register_index_select_derivatives)                    \
  X(register_masked_derivatives) X(register_matmul_derivatives) X(register_norm_derivatives)                           \
  X(register_pool_derivatives) X(register_pad_derivatives) X(register_random_derivatives)                              \
  X(register_rearrange_derivatives) X(register_recurrent_layer_derivatives) X(register_reduce_derivatives)             \
  X(register_scan_derivatives)                                                                                         \
  X(register_softmax_derivatives) X(register_sort_derivatives) X(register_statistics_derivatives)                      \
  X(register_triangular_derivatives) X(register_special_derivatives) X(register_unary_derivatives) X(register_vector_norm_derivatives)                 \
  X(register_upsample_derivatives) X(register_view_derivatives) X(register_missing_derivatives)
// clang-format on
#define RUSH_DECLARE(function) void function(Registry& registry);
RUSH_FORALL_DERIVATIVE_FAMILIES(RUSH_DECLARE)
#undef RUSH_DECLARE

}  // namespace rush
