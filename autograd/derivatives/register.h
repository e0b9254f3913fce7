// The Autograd kernels, a file a family.
#pragma once

namespace rush {

class Registry;

// Gives every differentiable operator its derivative.
void register_autograd(Registry& registry);

void register_binary_derivatives(Registry& registry);
void register_copy_derivatives(Registry& registry);
void register_join_derivatives(Registry& registry);
void register_gather_derivatives(Registry& registry);
void register_index_derivatives(Registry& registry);
void register_index_select_derivatives(Registry& registry);
void register_masked_derivatives(Registry& registry);
void register_matmul_derivatives(Registry& registry);
void register_pad_derivatives(Registry& registry);
void register_rearrange_derivatives(Registry& registry);
void register_reduce_derivatives(Registry& registry);
void register_triangular_derivatives(Registry& registry);
void register_unary_derivatives(Registry& registry);
void register_view_derivatives(Registry& registry);

}  // namespace rush
