#include "core/ops/view/triangular.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"

namespace rush {

namespace {

struct TrilBackward final : Node {
  int64_t diagonal = 0;
  void save(const Tensor&, int64_t k) { diagonal = k; }
  Tensors apply(const Tensors& g) override { return {g[0].tril(diagonal)}; }
};

struct TriuBackward final : Node {
  int64_t diagonal = 0;
  void save(const Tensor&, int64_t k) { diagonal = k; }
  Tensors apply(const Tensors& g) override { return {g[0].triu(diagonal)}; }
};

}  // namespace

void register_triangular_derivatives(Registry& r) {
  derive<ops::tril, TrilBackward>(r);
  derive<ops::tril_, TrilBackward>(r);
  derive<ops::triu, TriuBackward>(r);
  derive<ops::triu_, TriuBackward>(r);
}

}  // namespace rush
