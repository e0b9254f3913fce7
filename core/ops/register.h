// Lists every operator and sets its front, a file a family.
#pragma once

namespace rush {

class Registry;

void register_ops(Registry& registry);

void register_binary_ops(Registry& registry);
void register_copy_ops(Registry& registry);
void register_dims_ops(Registry& registry);
void register_extrema_ops(Registry& registry);
void register_factory_ops(Registry& registry);
void register_join_ops(Registry& registry);
void register_gather_ops(Registry& registry);
void register_index_ops(Registry& registry);
void register_index_select_ops(Registry& registry);
void register_masked_ops(Registry& registry);
void register_matmul_ops(Registry& registry);
void register_pad_ops(Registry& registry);
void register_range_ops(Registry& registry);
void register_rearrange_ops(Registry& registry);
void register_reduce_ops(Registry& registry);
void register_split_ops(Registry& registry);
void register_triangular_ops(Registry& registry);
void register_scan_ops(Registry& registry);
void register_softmax_ops(Registry& registry);
void register_sort_ops(Registry& registry);
void register_statistics_ops(Registry& registry);
void register_unary_ops(Registry& registry);
void register_view_ops(Registry& registry);

}  // namespace rush
