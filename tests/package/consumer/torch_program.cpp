#include <torch/torch.h>

int main() {
  const torch::Tensor x = torch::ones({2, 2}, torch::requires_grad());
  (x * x).sum().backward();
  return torch::equal(x.grad(), torch::full({2, 2}, 2.0f)) ? 0 : 1;
}
