#include "autograd/derivatives/register.h"

namespace rush {

void register_autograd(Registry& r) {
  register_activation_derivatives(r);
  register_binary_derivatives(r);
  register_conv_derivatives(r);
  register_im2col_derivatives(r);
  register_linear_derivatives(r);
  register_power_derivatives(r);
  register_ternary_derivatives(r);
  register_distance_derivatives(r);
  register_linalg_derivatives(r);
  register_decomposition_derivatives(r);
  register_attention_derivatives(r);
  register_fused_derivatives(r);
  register_copy_derivatives(r);
  register_ctc_loss_derivatives(r);
  register_cudnn_rnn_derivatives(r);
  register_extrema_derivatives(r);
  register_fft_derivatives(r);
  register_loss_derivatives(r);
  register_embedding_derivatives(r);
  register_sparse_derivatives(r);
  register_join_derivatives(r);
  register_gather_derivatives(r);
  register_index_derivatives(r);
  register_index_select_derivatives(r);
  register_masked_derivatives(r);
  register_matmul_derivatives(r);
  register_norm_derivatives(r);
  register_pool_derivatives(r);
  register_pad_derivatives(r);
  register_random_derivatives(r);
  register_rearrange_derivatives(r);
  register_reduce_derivatives(r);
  register_scan_derivatives(r);
  register_softmax_derivatives(r);
  register_sort_derivatives(r);
  register_statistics_derivatives(r);
  register_triangular_derivatives(r);
  register_unary_derivatives(r);
  register_vector_norm_derivatives(r);
  register_upsample_derivatives(r);
  register_view_derivatives(r);
  register_missing_derivatives(r);
}

}  // namespace rush
