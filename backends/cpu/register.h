// The CPU backend's kernels, a file a family, and its allocator.
#pragma once

namespace rush {

class Registry;

// Installs the CPU allocator and sets the CPU kernel of every operator.
void register_cpu(Registry& registry);

namespace cpu {
void register_allocator();
void register_binary();
void register_copy();
void register_gather();
void register_extrema();
void register_index();
void register_index_select();
void register_masked();
void register_matmul();
void register_optim();
void register_pad();
void register_range();
void register_rearrange();
void register_reduce();
void register_triangular();
void register_scan();
void register_softmax();
void register_sort();
void register_statistics();
void register_unary();
void register_view();
}  // namespace cpu

}  // namespace rush
