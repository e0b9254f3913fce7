#include "core/ops/register.h"

namespace rush {

void register_ops(Registry& r) {
  register_binary_ops(r);
  register_copy_ops(r);
  register_dims_ops(r);
  register_extrema_ops(r);
  register_factory_ops(r);
  register_join_ops(r);
  register_gather_ops(r);
  register_index_ops(r);
  register_index_select_ops(r);
  register_masked_ops(r);
  register_matmul_ops(r);
  register_pad_ops(r);
  register_range_ops(r);
  register_rearrange_ops(r);
  register_reduce_ops(r);
  register_split_ops(r);
  register_triangular_ops(r);
  register_scan_ops(r);
  register_softmax_ops(r);
  register_sort_ops(r);
  register_statistics_ops(r);
  register_unary_ops(r);
  register_view_ops(r);
}

}  // namespace rush
