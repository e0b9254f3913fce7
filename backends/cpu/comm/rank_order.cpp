#include "backends/cpu/comm/rank_order.h"

#include <algorithm>

#include "backends/functors/binary.h"
#include "backends/functors/compare.h"

namespace rush::cpu {

using distributed::ReduceOp;

namespace {

constexpr int64_t kChunk = 1024;  // elements, whose intermediate results stay in the first cache

template <class T, class Op>
void reduce_blocks(T* out, const T* blocks, int64_t numel, int64_t count, int64_t divisor, Op op) {
  using Acc = opmath_t<T>;
  Acc acc[kChunk];
  for (int64_t start = 0; start < numel; start += kChunk) {
    const int64_t length = std::min(kChunk, numel - start);
    for (int64_t i = 0; i < length; ++i) acc[i] = static_cast<Acc>(blocks[start + i]);
    for (int64_t rank = 1; rank < count; ++rank) {
      const T* block = blocks + rank * numel + start;
      for (int64_t i = 0; i < length; ++i) acc[i] = op(acc[i], static_cast<Acc>(block[i]));
    }
    if (divisor != 1) {
      for (int64_t i = 0; i < length; ++i) acc[i] = acc[i] / static_cast<Acc>(divisor);
    }
    for (int64_t i = 0; i < length; ++i) out[start + i] = static_cast<T>(acc[i]);
  }
}

// A sum of bools is "or", a product "and", as in PyTorch.
template <class T>
void reduce_elements(T* out, const T* blocks, int64_t numel, int64_t count, ReduceOp op) {
  switch (op) {
    case ReduceOp::SUM: return reduce_blocks(out, blocks, numel, count, 1, functors::Add());
    case ReduceOp::PRODUCT: return reduce_blocks(out, blocks, numel, count, 1, functors::Mul());
    case ReduceOp::AVG:  // of no integers
      if constexpr (is_floating_v<T> || is_complex_v<T>)
        reduce_blocks(out, blocks, numel, count, count, functors::Add());
      return;
    case ReduceOp::MIN:
      if constexpr (!is_complex_v<T>) reduce_blocks(out, blocks, numel, count, 1, functors::Minimum());
      return;
    case ReduceOp::MAX:
      if constexpr (!is_complex_v<T>) reduce_blocks(out, blocks, numel, count, 1, functors::Maximum());
      return;
  }
}

}  // namespace

void reduce_in_rank_order(void* out, const void* blocks, int64_t numel, int64_t count, ScalarType dtype, ReduceOp op) {
  switch (dtype) {
#define RUSH_CASE(enumerator, type, ...) \
  case ScalarType::enumerator:           \
    return reduce_elements(static_cast<type*>(out), static_cast<const type*>(blocks), numel, count, op);
    RUSH_FORALL_SCALAR_TYPES(RUSH_CASE)
#undef RUSH_CASE
  }
}

}  // namespace rush::cpu
