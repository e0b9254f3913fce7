// The training run of lab 3: ./rush demo with isrlu in relu's place. examples/mnist/main.cpp is compiled with its
// `main` named train_digits.
#include "core/dispatch/call.h"
#include "core/ops/pointwise/activation.h"
#include "tests/labs/solutions/isrlu.h"

int train_digits(int argc, char** argv);

static rush::Tensor in_relus_place(const rush::Tensor& self) {
  return rush::call_operator("lab::isrlu", {self})[0].as<rush::Tensor>();
}

int main(int argc, char** argv) {
  rush::Registry& registry = rush::registry();
  rush::labs::register_isrlu(registry);
  registry.composite(rush::ops::relu, in_relus_place);
  return train_digits(argc, argv);
}
