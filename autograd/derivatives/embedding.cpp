#include "core/ops/embedding.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/binary.h"
#include "core/ops/factories.h"
#include "core/ops/index_select.h"

namespace rush {

namespace {

struct EmbeddingBackward final : Node {
  int64_t rows = 0, padding_idx = -1;
  bool scale_grad_by_freq = false;
  Saved indices;
  RUSH_SAVED(indices)
  void save(const Tensor& weight, const Tensor& at, int64_t padding, bool scale, bool) {
    rows = weight.dim() > 0 ? weight.size(0) : 0;
    padding_idx = padding;
    scale_grad_by_freq = scale;
    indices = at;
  }
  Tensors apply(const Tensors& g) override {
    return {embedding_dense_backward(g[0], indices.get(), rows, padding_idx, scale_grad_by_freq)};
  }
};

// The sum over the look-ups of a row is linear: its transpose looks the rows of `g` up again.
struct EmbeddingDenseBackwardBackward final : Node {
  int64_t rows = 0, padding_idx = -1;
  bool scale_grad_by_freq = false;
  Saved indices;
  RUSH_SAVED(indices)
  void save(const Tensor&, const Tensor& at, int64_t num_weights, int64_t padding, bool scale) {
    rows = num_weights;
    padding_idx = padding;
    scale_grad_by_freq = scale;
    indices = at;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor at = indices.get();
    const bool pads = padding_idx >= 0 && padding_idx < rows;
    const TensorOptions ints = TensorOptions(kInt64).device(g[0].device());
    const Tensor table = pads ? index_fill(g[0], 0, full({1}, padding_idx, ints), 0) : g[0];
    const Tensor looked_up = embedding(table, at);
    if (!scale_grad_by_freq) return {looked_up};
    const Tensor flat = at.reshape(-1);
    const Tensor counts = index_add(zeros(rows, g[0].options()), 0, flat, ones(flat.numel(), g[0].options()));
    DimVector sizes(at.sizes());
    sizes.push_back(1);
    return {looked_up / index_select(counts, 0, flat).view(sizes)};
  }
};

}  // namespace

void register_embedding_derivatives(Registry& r) {
  derive<ops::embedding, EmbeddingBackward>(r);
  derive<ops::embedding_dense_backward, EmbeddingDenseBackwardBackward>(r);
}

}  // namespace rush
