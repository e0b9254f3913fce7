// The CPU backend's kernels, a file a family, and its allocator.
#pragma once

namespace rush {

class Registry;

// Installs the CPU allocator and sets the CPU kernel of every operator.
void register_cpu(Registry& registry);

namespace cpu {
// The families, in the order in which they register.
// clang-format off
#define RUSH_FORALL_CPU_FAMILIES(X)                                                                                    \
  X(register_amp) X(register_batch_norm) X(register_activation) X(register_binary) X(register_conv)                    \
  X(register_conv_transpose) X(register_conv_weight) X(register_compare) X(register_cross)                            \
  X(register_distance)                                                                                                 \
  X(register_embedding_bag) X(register_grid_sampler) X(register_sparse) X(register_im2col)                             \
  X(register_linalg_cholesky) X(register_linalg_eig)                                                                   \
  X(register_linalg_eigh) X(register_linalg_lu) X(register_linalg_qr) X(register_linalg_svd) X(register_attention)     \
  X(register_fused) X(register_copy) X(register_ctc_loss) X(register_loss) X(register_gather) X(register_extrema)      \
  X(register_fft) X(register_histogram) X(register_index) X(register_index_select) X(register_masked)                  \
  X(register_matmul) X(register_norm) X(register_pool) X(register_order_statistics) X(register_optim)                  \
  X(register_pad) X(register_mt19937) X(register_random) X(register_range) X(register_recurrent)                       \
  X(register_reduce) X(register_triangular) X(register_scan) X(register_search) X(register_softmax) X(register_sort)   \
  X(register_statistics) X(register_unary) X(register_upsample) X(register_unique) X(register_vector_norm)             \
  X(register_view) X(register_power) X(register_ternary) X(register_unary_math)
// clang-format on
#define RUSH_DECLARE(function) void function();
RUSH_FORALL_CPU_FAMILIES(RUSH_DECLARE)
#undef RUSH_DECLARE
}  // namespace cpu

}  // namespace rush
