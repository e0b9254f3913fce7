#include "core/ops/unary.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/binary.h"

namespace rush {

namespace {

struct NegBackward final : Node {
  Tensors apply(const Tensors& g) override { return {-g[0]}; }
};

struct ExpBackward final : Node {  // d e^x = g e^x
  Saved result;
  RUSH_SAVED(result)
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override { return {g[0] * result.get()}; }
};

}  // namespace

void register_unary_derivatives(Registry& r) {
  derive<ops::neg, NegBackward>(r);
  derive<ops::neg_, NegBackward>(r);
  derive<ops::exp, ExpBackward>(r);
  derive<ops::exp_, ExpBackward>(r);
}

}  // namespace rush
