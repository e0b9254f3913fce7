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
void register_index();
void register_masked();
void register_matmul();
void register_optim();
void register_reduce();
void register_unary();
}  // namespace cpu

}  // namespace rush
