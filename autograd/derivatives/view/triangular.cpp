#include "core/ops/view/triangular.h"

#include "autograd/derivatives/register.h"

namespace rush {

namespace {

template <auto& triangle>
struct TriangleBackward : Node {
  int64_t diagonal = 0;
  void save(const Tensor&, int64_t k) { diagonal = k; }
  Tensors apply(const Tensors& g) override { return {triangle(g[0], diagonal)}; }
};
struct TrilBackward final : TriangleBackward<ops::tril> {};
struct TriuBackward final : TriangleBackward<ops::triu> {};

}  // namespace

void register_triangular_derivatives(Registry& r) {
  derive_all<TrilBackward, ops::tril, ops::tril_>(r);
  derive_all<TriuBackward, ops::triu, ops::triu_>(r);
}

}  // namespace rush
