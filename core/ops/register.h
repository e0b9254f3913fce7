// Lists every operator and sets its front, a file a family.
#pragma once

namespace rush {

class Registry;

void register_ops(Registry& registry);

void register_amp_ops(Registry& registry);
void register_batch_norm_ops(Registry& registry);
void register_binary_ops(Registry& registry);
void register_class_loss_ops(Registry& registry);
void register_activation_ops(Registry& registry);
void register_binary_ops(Registry& registry);
void register_conv_ops(Registry& registry);
void register_embedding_bag_ops(Registry& registry);
void register_grid_sampler_ops(Registry& registry);
void register_im2col_ops(Registry& registry);
void register_linear_ops(Registry& registry);
void register_bitwise_ops(Registry& registry);
void register_compare_ops(Registry& registry);
void register_complex_ops(Registry& registry);
void register_power_ops(Registry& registry);
void register_ternary_ops(Registry& registry);
void register_distance_ops(Registry& registry);
void register_einsum_ops(Registry& registry);
void register_linalg_ops(Registry& registry);
void register_lu_ops(Registry& registry);
void register_least_squares_ops(Registry& registry);
void register_matrix_exp_ops(Registry& registry);
void register_matrix_norm_ops(Registry& registry);
void register_attention_ops(Registry& registry);
void register_fused_ops(Registry& registry);
void register_copy_ops(Registry& registry);
void register_ctc_loss_ops(Registry& registry);
void register_cudnn_rnn_ops(Registry& registry);
void register_dropout_ops(Registry& registry);
void register_embedding_ops(Registry& registry);
void register_semi_structured_ops(Registry& registry);
void register_sparse_ops(Registry& registry);
void register_sparse_arithmetic_ops(Registry& registry);
void register_sparse_convert_ops(Registry& registry);
void register_sparse_matmul_ops(Registry& registry);
void register_sparse_softmax_ops(Registry& registry);
void register_dims_ops(Registry& registry);
void register_extrema_ops(Registry& registry);
void register_fft_composites(Registry& registry);
void register_fft_ops(Registry& registry);
void register_foreach_ops(Registry& registry);
void register_fractional_pool_ops(Registry& registry);
void register_histogram_ops(Registry& registry);
void register_factory_ops(Registry& registry);
void register_fused_attention_ops(Registry& registry);
void register_loss_ops(Registry& registry);
void register_gather_ops(Registry& registry);
void register_join_ops(Registry& registry);
void register_index_ops(Registry& registry);
void register_index_select_ops(Registry& registry);
void register_masked_ops(Registry& registry);
void register_matmul_ops(Registry& registry);
void register_norm_ops(Registry& registry);
void register_pinned_ops(Registry&);
void register_pool_ops(Registry& registry);
void register_order_statistics_ops(Registry& registry);
void register_quantile_ops(Registry& registry);
void register_product_ops(Registry& registry);
void register_pad_ops(Registry& registry);
void register_random_factory_ops(Registry& registry);
void register_random_ops(Registry& registry);
void register_range_ops(Registry& registry);
void register_rearrange_ops(Registry& registry);
void register_recurrent_ops(Registry& registry);
void register_reduce_ops(Registry& registry);
void register_split_ops(Registry& registry);
void register_triangular_ops(Registry& registry);
void register_scan_ops(Registry& registry);
void register_search_ops(Registry& registry);
void register_softmax_ops(Registry& registry);
void register_sort_ops(Registry& registry);
void register_statistics_ops(Registry& registry);
void register_stft_ops(Registry& registry);
void register_unary_ops(Registry& registry);
void register_upsample_ops(Registry& registry);
void register_unique_ops(Registry& registry);
void register_vector_norm_ops(Registry& registry);
void register_window_ops(Registry& registry);
void register_view_ops(Registry& registry);

}  // namespace rush
