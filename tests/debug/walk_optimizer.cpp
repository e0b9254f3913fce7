// The program that docs/walk_optimizer.md walks through: two steps of SGD with momentum on a sum of squares.
#include "rushlight.h"

int main() {
  rush::set_num_threads(1);
  const rush::Tensor w = rush::full({3}, 2.0, rush::requires_grad());
  rush::optim::SGD sgd({w}, rush::optim::SGDOptions(0.25).momentum(0.5));
  for (int step = 0; step < 2; ++step) {
    sgd.zero_grad();
    (w * w).sum().backward();
    sgd.step();
  }
  return w[0].item<float>() == 0 ? 0 : 1;
}
