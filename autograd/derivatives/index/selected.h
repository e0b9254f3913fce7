// The derivative of operators that return some elements along a dimension, and where they were: a selected element's
// gradient goes back to its place, everything else has none.
#pragma once
#include "autograd/saved.h"
#include "core/ops/factory/factories.h"
#include "core/ops/index/gather.h"
#include "core/ops/view/view.h"

namespace rush {

struct SelectionBackward : Node {
  Saved indices;
  DimVector sizes;
  int64_t dim = 0;

  RUSH_SAVED(indices)
  void save_selection(const Tensor& self, int64_t along) {
    sizes = self.sizes();
    dim = wrap_dim(along, self.dim(), "backward");
  }
  // The positions carry no gradient, so they may be held as they are.
  void save_output(const Tensor&, const Tensor& where) { indices = where; }
  // The dimension comes back where it was dropped.
  Tensors apply(const Tensors& g) override {
    const Tensor where = indices.get();
    if (sizes.empty()) return {g[0]};
    const bool dropped = where.dim() < static_cast<int64_t>(sizes.size());
    const Tensor nothing = zeros(sizes, g[0].options());
    return {dropped ? nothing.scatter(dim, where.unsqueeze(dim), g[0].unsqueeze(dim))
                    : nothing.scatter(dim, where, g[0])};
  }
};

// Operators f(self, dim, flag): max, min, median, mode, sort.
struct SelectAlongBackward final : SelectionBackward {
  void save(const Tensor& self, int64_t along, bool) { save_selection(self, along); }
};

}  // namespace rush
