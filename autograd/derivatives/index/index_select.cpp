#include "core/ops/index/index_select.h"

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

struct IndexSelectBackward final : Node {
  SavedSizes sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(sizes, dim, index); }
  Tensors apply(const Tensors& g) override { return {index_add(zeros(sizes, g[0].options()), dim, index.get(), g[0])}; }
};

struct IndexAddBackward final : Node {
  SavedSizes source_sizes;
  int64_t dim = 0;
  Scalar alpha;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(std::ignore, dim, index, source_sizes, alpha); }
  Tensors apply(const Tensors& g) override {
    Tensors grads(3);
    grads[0] = g[0];
    if (needs(2)) grads[2] = index_select(g[0], dim, index.get()).reshape(source_sizes) * alpha;
    return grads;
  }
};

struct IndexCopyBackward final : Node {
  SavedSizes source_sizes;
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(std::ignore, dim, index, source_sizes); }
  Tensors apply(const Tensors& g) override {
    Tensors grads(3);
    if (needs(0)) grads[0] = index_fill(g[0], dim, index.get(), 0);
    if (needs(2)) grads[2] = index_select(g[0], dim, index.get()).reshape(source_sizes);
    return grads;
  }
};

struct IndexFillNode : Node {
  int64_t dim = 0;
  Saved index;
  RUSH_SAVED(index)
  auto saved_arguments() { return std::tie(std::ignore, dim, index, std::ignore); }
};

struct IndexFillScalarBackward final : IndexFillNode {
  Tensors apply(const Tensors& g) override { return {index_fill(g[0], dim, index.get(), 0)}; }
};

struct IndexFillBackward final : IndexFillNode {  // value: the sum of what it was written to, each element once
  Tensors apply(const Tensors& g) override {
    const Tensor kept = index_fill(g[0], dim, index.get(), 0);
    return {kept, Tensor(), needs(2) ? (g[0] - kept).sum() : Tensor()};
  }
};

}  // namespace

void register_index_select_derivatives(Registry& r) {
  derive<ops::index_select, IndexSelectBackward>(r);
  derive_all<IndexAddBackward, ops::index_add, ops::index_add_>(r);
  derive_all<IndexCopyBackward, ops::index_copy, ops::index_copy_>(r);
  derive_all<IndexFillScalarBackward, ops::index_fill_int_Scalar, ops::index_fill__int_Scalar>(r);
  derive_all<IndexFillBackward, ops::index_fill_int_Tensor, ops::index_fill__int_Tensor>(r);
}

}  // namespace rush
