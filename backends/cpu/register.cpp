#include "backends/cpu/register.h"

namespace rush {

void register_cpu(Registry&) {
  cpu::register_allocator();
  cpu::register_activation();
  cpu::register_binary();
  cpu::register_compare();
  cpu::register_copy();
  cpu::register_index();
  cpu::register_masked();
  cpu::register_matmul();
  cpu::register_reduce();
  cpu::register_power();
  cpu::register_ternary();
  cpu::register_unary();
  cpu::register_unary_math();
}

}  // namespace rush
