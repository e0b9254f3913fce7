#include "backends/cpu/register.h"

namespace rush {

void register_cpu(Registry&) {
  cpu::register_allocator();
  cpu::register_binary();
  cpu::register_copy();
  cpu::register_gather();
  cpu::register_extrema();
  cpu::register_index();
  cpu::register_index_select();
  cpu::register_masked();
  cpu::register_matmul();
  cpu::register_optim();
  cpu::register_pad();
  cpu::register_range();
  cpu::register_rearrange();
  cpu::register_reduce();
  cpu::register_triangular();
  cpu::register_scan();
  cpu::register_softmax();
  cpu::register_sort();
  cpu::register_statistics();
  cpu::register_unary();
  cpu::register_view();
}

}  // namespace rush
