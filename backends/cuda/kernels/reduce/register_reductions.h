// The kernels that combine, move and order elements, a function a file.
#pragma once

namespace rush::cuda {

// Calls all below.
void register_reductions();

void register_add_layer_norm();
void register_add_layer_norm_backward();
void register_attention();
void register_batch_norm();
void register_cross_entropy();
void register_embedding_bag();
void register_extrema();
void register_extreme_index();
void register_gather();
void register_group_norm();
void register_histogram();
void register_index();
void register_layer_norm();
void register_layer_norm_backward();
void register_linalg();
void register_nll_loss();
void register_order_statistics();
void register_pool();
void register_reduce();
void register_reduce_count();
void register_repeat_interleave();
void register_scan();
void register_scan_extreme();
void register_search();
void register_softmax();
void register_softmax_backward();
void register_sort();
void register_statistics();
void register_unique();
void register_vector_norm();

}  // namespace rush::cuda
