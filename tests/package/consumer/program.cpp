#include <rushlight.h>

int main() {
  rush::nn::Linear layer(3, 1);
  rush::optim::SGD optimizer(layer->parameters(), rush::optim::SGDOptions(0.1));
  const rush::Tensor x = rush::ones({4, 3});
  float first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const rush::Tensor loss = (layer(x) - 2).pow(2).mean();
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
    if (step == 0) first = last;
  }
  return last < first ? 0 : 1;
}
