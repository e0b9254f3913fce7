#include "backends/cpu/register.h"

namespace rush {

void register_cpu(Registry&) {
  cpu::register_allocator();
  cpu::register_binary();
  cpu::register_conv();
  cpu::register_conv_transpose();
  cpu::register_conv_weight();
  cpu::register_copy();
  cpu::register_index();
  cpu::register_masked();
  cpu::register_matmul();
  cpu::register_reduce();
  cpu::register_unary();
  cpu::register_view();
}

}  // namespace rush
