#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush::cuda {

void register_reductions() {
  register_add_layer_norm();
  register_add_layer_norm_backward();
  register_attention();
  register_batch_norm();
  register_cross_entropy();
  register_embedding_bag();
  register_extrema();
  register_extreme_index();
  register_gather();
  register_group_norm();
  register_histogram();
  register_index();
  register_layer_norm();
  register_layer_norm_backward();
  register_linalg();
  register_nll_loss();
  register_order_statistics();
  register_pool();
  register_reduce();
  register_reduce_count();
  register_repeat_interleave();
  register_scan();
  register_scan_extreme();
  register_search();
  register_softmax();
  register_softmax_backward();
  register_sort();
  register_statistics();
  register_unique();
  register_vector_norm();
}

}  // namespace rush::cuda
