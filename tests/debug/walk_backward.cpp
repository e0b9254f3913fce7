// The program that docs/walk_backward.md walks through: a weighted sum of squares.
#include "rushlight.h"

int main() {
  rush::set_num_threads(1);
  const rush::Tensor w = rush::full({3}, 2.0, rush::requires_grad());
  const rush::Tensor x = rush::tensor({1.0, 2.0, 3.0}, rush::kFloat32);
  const rush::Tensor y = w * x;
  const rush::Tensor loss = (y * y).sum();
  loss.backward();
  return w.grad()[2].item<float>() == 36 ? 0 : 1;
}
