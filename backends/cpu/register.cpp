#include "backends/cpu/register.h"

namespace rush {

void register_cpu(Registry&) {
  cpu::register_allocator();
  cpu::register_binary();
  cpu::register_copy();
  cpu::register_index();
  cpu::register_masked();
  cpu::register_matmul();
  cpu::register_optim();
  cpu::register_reduce();
  cpu::register_unary();
}

}  // namespace rush
