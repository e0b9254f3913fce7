// Embeddings of bags: rows of a table looked up and reduced to one, bag by bag.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, bool,
                                                               int64_t, bool, const std::optional<Tensor>&, bool)>
    embedding_bag{
        "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, "
        "Tensor, Tensor)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, bool,
                                                               int64_t, bool, const std::optional<Tensor>&, bool,
                                                               std::optional<int64_t>)>
    embedding_bag_padding_idx{
        "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, "
        "int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> "
        "(Tensor, Tensor, Tensor, Tensor)"};
}  // namespace ops

enum class BagMode : int64_t { Sum, Mean, Max };

/// Bag b holds indices[offsets[b]], ..., up to the next bag's; the last one reaches to the end. `indices` (n) and
/// `offsets` (bags) are int32 or int64; with `include_last_offset` the last offset is the end and begins no bag. `mode`
/// is a BagMode's number: the sum, weighted by `per_sample_weights` (n) where they are given, the mean or the maximum
/// of a bag's rows of `weight` (rows, d). The row `padding_idx` is left out everywhere; a bag without rows gives zeros.
/// `scale_grad_by_freq` and `sparse` are as in embedding; of maxima the gradient is always dense.
/// Returns the result (bags, d), and what PyTorch returns beside it: the bag of each index (empty for a plain sum,
/// where nobody needs it), the bags' sizes without padding (zeros for sums), and for maxima the rows that they come
/// from (bags, d). Throws IndexError for an index out of range, ValueError for offsets that do not ascend from 0 to n.
inline std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                                const Tensor& offsets, bool scale_grad_by_freq,
                                                                int64_t mode, bool sparse,
                                                                const std::optional<Tensor>& per_sample_weights,
                                                                bool include_last_offset,
                                                                std::optional<int64_t> padding_idx) {
  return ops::embedding_bag_padding_idx(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                        include_last_offset, padding_idx);
}
inline std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq = false,
    int64_t mode = 0, bool sparse = false, const std::optional<Tensor>& per_sample_weights = std::nullopt,
    bool include_last_offset = false) {
  return ops::embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                            include_last_offset);
}

/// All row-major; integers are int64.
struct EmbeddingBags {
  BagMode mode;
  int64_t padding;                  // -1 for none
  Tensor weight, indices, offsets;  // (rows, d), (n), (at least bags)
  Tensor per_sample_weights;        // (n), or undefined
  Tensor output, bag_of_index;      // (bags, d), (n) or empty
  Tensor sizes, maxima;             // (at least bags), (bags, d) or like sizes

  template <class F>
  void each_tensor(const F& f) {  // see core/dispatch/cpu_fallback.h
    for (Tensor* t : {&weight, &indices, &offsets, &per_sample_weights, &output, &bag_of_index, &sizes, &maxima}) f(*t);
  }
};

namespace kernels {
// Fills `output`; `bag_of_index` where it is not empty; the first of `sizes`, with zeros for BagMode::Sum; and
// `maxima`, in other modes than BagMode::Max with what `sizes` has. Checks offsets and indices before that.
inline constinit Kernel<void(const EmbeddingBags& bags)> embedding_bag{"embedding_bag"};
}  // namespace kernels

}  // namespace rush
