// An operator that uses a module of nn, which a program that uses none of nn does not have.
#include <rushlight.h>

#include "core/library/library.h"

using namespace rush;

constinit Op<Tensor(const Tensor&)> normed{"outside::normed(Tensor x) -> Tensor"};

RUSH_OPERATORS(library) {
  library.register_composite<normed>([](const Tensor& x) { return nn::LocalResponseNorm(2)(x); });
}
