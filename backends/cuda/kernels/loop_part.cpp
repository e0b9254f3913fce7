#include "backends/cuda/kernels/loop_part.h"

#include <limits>

namespace rush::cuda {

LoopPart::LoopPart(const TensorIterator& it) : shape(it.shape()), operands(it.ntensors()) {
  for (int t = 0; t < operands; ++t) {
    data[t] = it.operand(t).data;
    strides[t] = it.operand(t).strides;
  }
}

int64_t LoopPart::numel() const {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

bool fits(const LoopPart& part) {
  if (part.numel() > kLimit) return false;
  for (int t = 0; t < part.operands; ++t) {
    int64_t reach = 0;
    for (size_t d = 0; d < part.shape.size(); ++d) reach += (part.shape[d] - 1) * part.strides[t][d];
    if (reach > kLimit) return false;
  }
  return true;
}

// The dimension along which some operand reaches farthest.
size_t longest_dimension(const LoopPart& part) {
  size_t longest = 0;
  int64_t farthest = -1;
  for (size_t d = 0; d < part.shape.size(); ++d) {
    for (int t = 0; t < part.operands; ++t) {
      const int64_t reach = (part.shape[d] - 1) * part.strides[t][d];
      if (reach > farthest) {
        farthest = reach;
        longest = d;
      }
    }
  }
  return longest;
}

// The steps [begin, begin + count) along dimension d.
LoopPart narrowed(const LoopPart& part, size_t d, int64_t begin, int64_t count) {
  LoopPart result = part;
  result.shape[d] = count;
  for (int t = 0; t < part.operands; ++t) result.data[t] += begin * part.strides[t][d];
  return result;
}

// One step along the outermost dimension, which goes.
LoopPart outermost_step(const LoopPart& part, int64_t step) {
  const size_t last = part.shape.size() - 1;
  LoopPart result = narrowed(part, last, step, 1);
  result.shape.resize(last);
  for (int t = 0; t < part.operands; ++t) result.strides[t].resize(last);
  return result;
}

}  // namespace

void split_loop(const LoopPart& whole, PartFn fn, void* context) {
  if (whole.numel() == 0) return;
  if (whole.shape.size() > static_cast<size_t>(kMaxDims)) {
    for (int64_t i = 0; i < whole.shape.back(); ++i) split_loop(outermost_step(whole, i), fn, context);
    return;
  }
  if (fits(whole)) return fn(context, whole);
  const size_t d = longest_dimension(whole);
  const int64_t half = whole.shape[d] / 2;
  split_loop(narrowed(whole, d, 0, half), fn, context);
  split_loop(narrowed(whole, d, half, whole.shape[d] - half), fn, context);
}

}  // namespace rush::cuda
