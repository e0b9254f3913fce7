// The CPU backend's kernels, a file a family, and its allocator.
#pragma once

namespace rush {

class Registry;

// Installs the CPU allocator and sets the CPU kernel of every operator.
void register_cpu(Registry& registry);

namespace cpu {
void register_batch_norm();
void register_binary();
void register_conv();
void register_conv_transpose();
void register_conv_weight();
void register_distance();
void register_embedding_bag();
void register_sparse();
void register_im2col();
void register_linalg_cholesky();
void register_linalg_eig();
void register_linalg_eigh();
void register_linalg_lu();
void register_linalg_qr();
void register_linalg_svd();
void register_amp();
void register_attention();
void register_fused();
void register_copy();
void register_ctc_loss();
void register_loss();
void register_gather();
void register_extrema();
void register_fft();
void register_histogram();
void register_index();
void register_index_select();
void register_masked();
void register_matmul();
void register_norm();
void register_pool();
void register_order_statistics();
void register_optim();
void register_pad();
void register_mt19937();
void register_random();
void register_range();
void register_rearrange();
void register_reduce();
void register_triangular();
void register_scan();
void register_search();
void register_softmax();
void register_sort();
void register_statistics();
void register_unary();
void register_upsample();
void register_unique();
void register_vector_norm();
void register_view();
void register_activation();
void register_compare();
void register_power();
void register_ternary();
void register_unary();
void register_unary_math();
}  // namespace cpu

}  // namespace rush
