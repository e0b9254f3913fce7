#include "autograd/derivatives/register.h"

namespace rush {

void register_autograd(Registry& r) {
  register_binary_derivatives(r);
  register_copy_derivatives(r);
  register_join_derivatives(r);
  register_gather_derivatives(r);
  register_index_derivatives(r);
  register_index_select_derivatives(r);
  register_masked_derivatives(r);
  register_matmul_derivatives(r);
  register_pad_derivatives(r);
  register_rearrange_derivatives(r);
  register_reduce_derivatives(r);
  register_triangular_derivatives(r);
  register_unary_derivatives(r);
  register_view_derivatives(r);
}

}  // namespace rush
