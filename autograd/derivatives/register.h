// The Autograd kernels, a file a family.
#pragma once

namespace rush {

class Registry;

// Gives every differentiable operator its derivative.
void register_autograd(Registry& registry);

void register_activation_derivatives(Registry& registry);
void register_binary_derivatives(Registry& registry);
void register_conv_derivatives(Registry& registry);
void register_im2col_derivatives(Registry& registry);
void register_linear_derivatives(Registry& registry);
void register_power_derivatives(Registry& registry);
void register_ternary_derivatives(Registry& registry);
void register_distance_derivatives(Registry& registry);
void register_linalg_derivatives(Registry& registry);
void register_decomposition_derivatives(Registry& registry);
void register_attention_derivatives(Registry& registry);
void register_copy_derivatives(Registry& registry);
void register_ctc_loss_derivatives(Registry& registry);
void register_cudnn_rnn_derivatives(Registry& registry);
void register_extrema_derivatives(Registry& registry);
void register_fft_derivatives(Registry& registry);
void register_loss_derivatives(Registry& registry);
void register_embedding_derivatives(Registry& registry);
void register_sparse_derivatives(Registry& registry);
void register_fused_derivatives(Registry& registry);
void register_join_derivatives(Registry& registry);
void register_gather_derivatives(Registry& registry);
void register_index_derivatives(Registry& registry);
void register_index_select_derivatives(Registry& registry);
void register_masked_derivatives(Registry& registry);
void register_matmul_derivatives(Registry& registry);
void register_norm_derivatives(Registry& registry);
void register_pool_derivatives(Registry& registry);
void register_pad_derivatives(Registry& registry);
void register_random_derivatives(Registry& registry);
void register_rearrange_derivatives(Registry& registry);
void register_reduce_derivatives(Registry& registry);
void register_scan_derivatives(Registry& registry);
void register_softmax_derivatives(Registry& registry);
void register_sort_derivatives(Registry& registry);
void register_statistics_derivatives(Registry& registry);
void register_triangular_derivatives(Registry& registry);
void register_unary_derivatives(Registry& registry);
void register_vector_norm_derivatives(Registry& registry);
void register_upsample_derivatives(Registry& registry);
void register_view_derivatives(Registry& registry);
void register_missing_derivatives(Registry& registry);

}  // namespace rush
