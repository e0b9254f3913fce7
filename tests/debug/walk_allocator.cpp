// The program that docs/walk_allocator.md walks through: a freed block serves the next tensor, a large one needs pages.
#include "rushlight.h"

namespace {

rush::Tensor make_tensor(int64_t size) { return rush::empty({size}); }

}  // namespace

int main() {
  rush::set_num_threads(1);
  const void* first = nullptr;
  {
    const rush::Tensor small = make_tensor(3000);
    first = small.data_ptr();
  }
  const rush::Tensor again = make_tensor(2900);
  const rush::Tensor large = make_tensor(1 << 20);
  return again.data_ptr() == first && large.defined() ? 0 : 1;
}
