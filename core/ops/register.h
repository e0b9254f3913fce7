// Lists every operator and sets its front, a file a family.
#pragma once
#include "core/dispatch/registry.h"

namespace rush {

void register_ops(Registry& registry);

// The families, in the order in which they register.
// clang-format off
#define RUSH_FORALL_OPERATOR_FAMILIES(X)                                                                               \
  X(register_amp_ops) X(register_batch_norm_ops) X(register_binary_ops) X(register_class_loss_ops)                     \
  X(register_activation_ops) X(register_conv_ops) X(register_embedding_bag_ops) X(register_grid_sampler_ops)           \
  X(register_im2col_ops) X(register_linear_ops) X(register_bitwise_ops) X(register_compare_ops)                        \
  X(register_complex_ops) X(register_power_ops) X(register_ternary_ops) X(register_distance_ops)                       \
  X(register_einsum_ops) X(register_linalg_ops) X(register_lu_ops) X(register_least_squares_ops)                       \
  X(register_matrix_exp_ops) X(register_matrix_norm_ops) X(register_attention_ops) X(register_fused_attention_ops)     \
  X(register_copy_ops) X(register_ctc_loss_ops) X(register_cudnn_rnn_ops) X(register_dropout_ops)                      \
  X(register_embedding_ops) X(register_dims_ops) X(register_extrema_ops) X(register_fft_composites)                    \
  X(register_fft_ops) X(register_fractional_pool_ops) X(register_histogram_ops) X(register_factory_ops)                \
  X(register_foreach_ops) X(register_loss_ops) X(register_fused_ops) X(register_gather_ops) X(register_join_ops)       \
  X(register_index_ops) X(register_index_select_ops) X(register_masked_ops) X(register_matmul_ops)                     \
  X(register_norm_ops) X(register_pinned_ops) X(register_pool_ops) X(register_order_statistics_ops)                    \
  X(register_quantile_ops) X(register_product_ops) X(register_pad_ops) X(register_random_factory_ops)                  \
  X(register_random_ops) X(register_range_ops) X(register_rearrange_ops) X(register_recurrent_ops)                     \
  X(register_recurrent_layer_ops)                                                                                      \
  X(register_reduce_ops) X(register_split_ops) X(register_triangular_ops) X(register_scan_ops)                         \
  X(register_search_ops) X(register_softmax_ops) X(register_sort_ops) X(register_statistics_ops)                       \
  X(register_stft_ops) X(register_special_ops) X(register_unary_ops) X(register_upsample_ops) X(register_unique_ops)                           \
  X(register_vector_norm_ops) X(register_window_ops) X(register_view_ops) X(register_semi_structured_ops)              \
  X(register_sparse_ops) X(register_sparse_arithmetic_ops) X(register_sparse_convert_ops)                              \
  X(register_sparse_matmul_ops) X(register_sparse_softmax_ops)
// clang-format on
#define RUSH_DECLARE(function) void function(Registry& registry);
RUSH_FORALL_OPERATOR_FAMILIES(RUSH_DECLARE)
#undef RUSH_DECLARE

}  // namespace rush
