#include "core/ops/view/join.h"

#include "autograd/derivatives/register.h"
#include "core/ops/view/view.h"

namespace rush {

namespace {

struct CatBackward final : Node {  // each tensor's part of the gradient
  int64_t dim = 0;
  DimVector lengths;  // along dim; -1 for a tensor that was left out
  void save(TensorList tensors, int64_t d) {
    int64_t dims = 1;
    for (const Tensor& t : tensors) {
      if (t.dim() != 1 || t.sizes()[0] != 0) dims = t.dim();
    }
    dim = wrap_dim(d, dims, "cat");
    for (const Tensor& t : tensors) lengths.push_back(t.dim() == 1 && t.sizes()[0] == 0 ? -1 : t.size(dim));
  }
  Tensors apply(const Tensors& g) override {
    Tensors grads(lengths.size());
    int64_t start = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (needs(i)) grads[i] = lengths[i] < 0 ? g[0].new_zeros({0}) : g[0].narrow(dim, start, lengths[i]);
      start += std::max<int64_t>(lengths[i], 0);
    }
    return grads;
  }
};

struct StackBackward final : Node {
  int64_t dim = 0;
  void save(TensorList tensors, int64_t d) { dim = wrap_dim(d, tensors[0].dim() + 1, "stack"); }
  Tensors apply(const Tensors& g) override { return g[0].unbind(dim); }
};

}  // namespace

void register_join_derivatives(Registry& r) {
  derive<ops::cat, CatBackward>(r);
  derive<ops::stack, StackBackward>(r);
}

}  // namespace rush
