// The program that docs/walk_iterator.md walks through: a sum of two tensors that differ in shape and dtype.
#include "rushlight.h"

namespace {

rush::Tensor add_weights(const rush::Tensor& counts, const rush::Tensor& weights) { return counts + weights; }

}  // namespace

int main() {
  rush::set_num_threads(1);
  const rush::Tensor counts = rush::arange(24).view({2, 3, 4});
  const rush::Tensor weights = rush::full({4}, 0.5);
  return add_weights(counts, weights).sum().item<float>() == 276 + 12 ? 0 : 1;
}
