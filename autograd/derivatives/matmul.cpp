#include "core/ops/matmul.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"

namespace rush {

namespace {

struct MmBackward final : Node {  // d(A B) = G B^T, A^T G
  Saved self, mat2;
  RUSH_SAVED(self, mat2)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    if (needs(0)) mat2 = b;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? g[0].mm(mat2.get().t()) : Tensor(), needs(1) ? self.get().t().mm(g[0]) : Tensor()};
  }
};

}  // namespace

void register_matmul_derivatives(Registry& r) { derive<ops::mm, MmBackward>(r); }

}  // namespace rush
