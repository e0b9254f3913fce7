// Lists every operator and sets its front, a file a family.
#pragma once

namespace rush {

class Registry;

void register_ops(Registry& registry);

void register_binary_ops(Registry& registry);
void register_copy_ops(Registry& registry);
void register_factory_ops(Registry& registry);
void register_index_ops(Registry& registry);
void register_masked_ops(Registry& registry);
void register_matmul_ops(Registry& registry);
void register_reduce_ops(Registry& registry);
void register_unary_ops(Registry& registry);
void register_view_ops(Registry& registry);

}  // namespace rush
