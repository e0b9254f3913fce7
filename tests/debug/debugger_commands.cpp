// The program that docs/debugger_commands.md looks into: a step that makes all weights 0, and a division by them.
#include "rushlight.h"

int main() {
  rush::set_num_threads(1);
  const rush::Tensor x = rush::ones({2, 3});
  const rush::Tensor w = rush::full({3}, 2.0, rush::requires_grad());
  const rush::Tensor loss = (x * w).mul(w).sum();
  loss.backward();
  {
    const rush::NoGradGuard no_grad;
    w.sub_(w.grad() * 0.25);
  }
  const rush::Tensor ratio = w / w;
  return (ratio + 1).isnan().all().item<bool>() ? 0 : 1;
}
