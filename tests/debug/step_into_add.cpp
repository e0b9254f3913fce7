// The program that docs/step_into_add.md steps through.
#include "rushlight.h"

int main() {
  rush::set_num_threads(1);
  const rush::Tensor a = rush::ones({8}, rush::requires_grad());
  const rush::Tensor b = rush::ones({8});
  const rush::Tensor warm_up = b.mul(b);  // the first operator of a process registers them all
  const rush::Tensor c = a + b;
  c.sum().backward();
  return a.grad().sum().item<float>() == 8 ? 0 : 1;
}
