#include "core/ops/register.h"

namespace rush {

void register_ops(Registry& r) {
  register_binary_ops(r);
  register_copy_ops(r);
  register_factory_ops(r);
  register_index_ops(r);
  register_masked_ops(r);
  register_matmul_ops(r);
  register_reduce_ops(r);
  register_unary_ops(r);
  register_view_ops(r);
}

}  // namespace rush
