#include "core/ops/index/embedding.h"

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/index/embedding_bag.h"

namespace rush {

namespace {

// The table with zeros in this row; as it is where there is none.
Tensor without_row(const Tensor& table, int64_t row) {
  if (row < 0 || row >= table.size(0)) return table;
  return index_fill(table, 0, full({1}, row, TensorOptions(kInt64).device(table.device())), 0);
}

struct EmbeddingBackward final : Node {
  int64_t rows = 0, padding_idx = -1;
  bool scale_grad_by_freq = false, sparse = false;
  Saved indices;
  RUSH_SAVED(indices)
  void save(const Tensor& weight, const Tensor& at, int64_t padding, bool scale, bool sparse_grad) {
    sparse = sparse_grad;
    rows = weight.dim() > 0 ? weight.size(0) : 0;
    padding_idx = padding;
    scale_grad_by_freq = scale;
    indices = at;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor at = indices.get();
    return {sparse ? embedding_sparse_backward(g[0], at, rows, padding_idx, scale_grad_by_freq)
                   : embedding_dense_backward(g[0], at, rows, padding_idx, scale_grad_by_freq)};
  }
};

// The sum over the look-ups of a row is linear: its transpose looks the rows of `g` up again.
struct EmbeddingDenseBackwardBackward final : Node {
  int64_t rows = 0, padding_idx = -1;
  bool scale_grad_by_freq = false;
  Saved indices;
  RUSH_SAVED(indices)
  auto saved_arguments() { return std::tie(std::ignore, indices, rows, padding_idx, scale_grad_by_freq); }
  Tensors apply(const Tensors& g) override {
    const Tensor at = indices.get();
    const Tensor looked_up = embedding(without_row(g[0], padding_idx), at);
    if (!scale_grad_by_freq) return {looked_up};
    const Tensor flat = at.reshape(-1);
    const Tensor counts = index_add(zeros(rows, g[0].options()), 0, flat, ones(flat.numel(), g[0].options()));
    return {looked_up / index_select(counts, 0, flat).view(at.sizes()).unsqueeze(-1)};
  }
};

struct EmbeddingBagBackward final : Node {
  int64_t rows = 0, padding = -1;
  bool scale_grad_by_freq = false, sparse = false;
  BagMode mode = BagMode::Sum;
  Saved weight, indices, per_sample_weights, bag_of_index, bag_sizes, maxima;
  RUSH_SAVED(weight, indices, per_sample_weights, bag_of_index, bag_sizes, maxima)

  void save(const Tensor& table, const Tensor& at, const Tensor&, bool scale, int64_t how, bool sparse_grad,
            const std::optional<Tensor>& each, bool, std::optional<int64_t> padding_idx) {
    sparse = sparse_grad;
    rows = table.dim() > 0 ? table.size(0) : 0;
    padding = !padding_idx ? -1 : *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    scale_grad_by_freq = scale;
    mode = static_cast<BagMode>(how);
    if (needs(3)) weight = table;
    indices = at;
    per_sample_weights = each;
  }
  void save_output(const Tensor&, const Tensor& bags, const Tensor& sizes, const Tensor& where) {
    bag_of_index = bags;
    bag_sizes = sizes;
    maxima = where;
  }

  Tensors apply(const Tensors& g) override {
    if (mode == BagMode::Max) return {maximum_grad(g[0])};
    const Tensor at = indices.get(), each = per_sample_weights.get();
    // What each look-up's bag gets, (n, d).
    Tensor looked_up = index_select(g[0], 0, bag_of_index.get());
    Tensors grads(4);
    if (needs(3)) grads[3] = (looked_up * index_select(without_row(weight.get(), padding), 0, at)).sum({1});
    if (mode == BagMode::Mean) {
      const Tensor divisors = clamp_min(index_select(bag_sizes.get(), 0, bag_of_index.get()), 1);
      looked_up = looked_up / divisors.unsqueeze(1);
    }
    if (each.defined()) looked_up = looked_up * each.unsqueeze(1);
    if (needs(0)) {
      grads[0] = sparse ? embedding_sparse_backward(looked_up, at, rows, padding, scale_grad_by_freq)
                        : embedding_dense_backward(looked_up, at, rows, padding, scale_grad_by_freq);
    }
    return grads;
  }

 private:
  Tensor maximum_grad(const Tensor& g) const {
    const Tensor filled = bag_sizes.get().to(kBool).unsqueeze(1);  // an empty bag's zeros come from no row
    return scatter_add(zeros({rows, g.size(1)}, g.options()), 0, maxima.get(), g * filled);
  }
};

}  // namespace

void register_embedding_derivatives(Registry& r) {
  derive<ops::embedding, EmbeddingBackward>(r);
  derive<ops::embedding_dense_backward, EmbeddingDenseBackwardBackward>(r);
  derive<ops::embedding_bag_padding_idx, EmbeddingBagBackward>(r);
}

}  // namespace rush
