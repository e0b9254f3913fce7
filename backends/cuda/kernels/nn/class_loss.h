// The losses of samples with a class each, and their sum or mean.
#pragma once
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "core/ops/nn/loss.h"

namespace rush::cuda {

// What one sample adds to the loss and to the weight that a mean divides by.
template <class Math>
struct LossShare {
  Math loss, weight;
};

template <class Math>
struct AddShares {
  using In = LossShare<Math>;
  using Acc = LossShare<Math>;
  __device__ Acc identity() const { return {Math(0), Math(0)}; }
  __device__ Acc take(const Acc& acc, const In& x) const { return combine(acc, x); }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.loss + b.loss, a.weight + b.weight}; }
};

template <class T, class W>
struct StoreTotal {
  T* out;  // null: each loss was stored
  W* weight;
  bool mean, keep_weight;
  __device__ void operator()(int64_t, const LossShare<opmath_t<T>>& total) const {
    *weight = static_cast<W>(keep_weight ? total.weight : opmath_t<T>(0));
    if (out) *out = static_cast<T>(mean ? total.loss / total.weight : total.loss);
  }
};

template <class T>
struct StoreEach {
  const LossShare<opmath_t<T>>* shares;
  T* out;
  __device__ void operator()(int64_t i) const { out[i] = static_cast<T>(shares[i].loss); }
};

// Writes the losses of n samples, or what they reduce to, and the sum of their weights; where nothing is reduced and
// `always` does not hold, that is zero.
template <class T, class W>
void store_losses(const char* op, const LossShare<opmath_t<T>>* shares, int64_t n, const Tensor& output,
                  W* total_weight, int64_t reduction, bool always) {
  using Math = opmath_t<T>;
  const bool each = reduction == Reduction::None;
  if (each) for_each_index(op, n, StoreEach<T>{shares, output.data_ptr<T>()});
  const StoreTotal<T, W> store{each ? nullptr : output.data_ptr<T>(), total_weight, reduction == Reduction::Mean,
                               always || !each};
  reduce_dims(op, shares, AddShares<Math>(), store, {{n, 1, 0, true}});
}

}  // namespace rush::cuda
