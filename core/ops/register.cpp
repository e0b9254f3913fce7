#include "core/ops/register.h"

namespace rush {

void register_ops(Registry& r) {
  register_amp_ops(r);
  register_batch_norm_ops(r);
  register_binary_ops(r);
  register_class_loss_ops(r);
  register_activation_ops(r);
  register_binary_ops(r);
  register_conv_ops(r);
  register_embedding_bag_ops(r);
  register_grid_sampler_ops(r);
  register_im2col_ops(r);
  register_linear_ops(r);
  register_bitwise_ops(r);
  register_compare_ops(r);
  register_complex_ops(r);
  register_power_ops(r);
  register_ternary_ops(r);
  register_distance_ops(r);
  register_einsum_ops(r);
  register_linalg_ops(r);
  register_matrix_norm_ops(r);
  register_attention_ops(r);
  register_fused_attention_ops(r);
  register_copy_ops(r);
  register_ctc_loss_ops(r);
  register_cudnn_rnn_ops(r);
  register_dropout_ops(r);
  register_embedding_ops(r);
  register_dims_ops(r);
  register_extrema_ops(r);
  register_fft_composites(r);
  register_fft_ops(r);
  register_fractional_pool_ops(r);
  register_histogram_ops(r);
  register_factory_ops(r);
  register_foreach_ops(r);
  register_loss_ops(r);
  register_fused_ops(r);
  register_gather_ops(r);
  register_join_ops(r);
  register_index_ops(r);
  register_index_select_ops(r);
  register_masked_ops(r);
  register_matmul_ops(r);
  register_norm_ops(r);
  register_pinned_ops(r);
  register_pool_ops(r);
  register_order_statistics_ops(r);
  register_quantile_ops(r);
  register_product_ops(r);
  register_pad_ops(r);
  register_random_factory_ops(r);
  register_random_ops(r);
  register_range_ops(r);
  register_rearrange_ops(r);
  register_recurrent_ops(r);
  register_reduce_ops(r);
  register_split_ops(r);
  register_triangular_ops(r);
  register_scan_ops(r);
  register_search_ops(r);
  register_softmax_ops(r);
  register_sort_ops(r);
  register_statistics_ops(r);
  register_stft_ops(r);
  register_unary_ops(r);
  register_upsample_ops(r);
  register_unique_ops(r);
  register_vector_norm_ops(r);
  register_window_ops(r);
  register_view_ops(r);
}

}  // namespace rush
