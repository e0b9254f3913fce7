// The loop of an element-wise operator: the shape that its operands broadcast to, their strides in it, which of its
// dimensions are one, and the walk through it. See Note [How an element-wise loop is prepared].
#include <algorithm>
#include <utility>

#include "core/integer.h"
#include "core/iterator/output_checks.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

DimVector broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op) {
  const auto [longer, shorter] = a.size() >= b.size() ? std::pair(a, b) : std::pair(b, a);
  DimVector shape(longer);
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = shorter.size(); i-- > 0;) {  // from the last on, which is the one that the error names
    int64_t& size = shape[lead + i];
    if (size != shorter[i] && size != 1 && shorter[i] != 1) throw_no_broadcast(op, a, b, shorter.size() - i);
    if (size == 1) size = shorter[i];
  }
  return shape;
}

void TensorIterator::set_strides() {
  const size_t dims = shape_.size();
  for (int i = operands_[0].tensor.defined() ? 0 : 1; i < count_; ++i) {
    Operand& operand = operands_[i];
    const Tensor& t = operand.tensor;
    operand.data = static_cast<char*>(t.data_ptr());
    operand.strides.resize(dims, 0);
    const size_t lead = dims - t.sizes().size();
    for (size_t d = 0; d < t.sizes().size(); ++d) {
      const bool broadcast = t.sizes()[d] == 1 && shape_[lead + d] != 1;
      // Unsigned, because the stride of a dimension of one element may be anything.
      const uint64_t stride = static_cast<uint64_t>(t.strides()[d]) * static_cast<uint64_t>(t.element_size());
      operand.strides[lead + d] = broadcast ? 0 : static_cast<int64_t>(stride);
    }
  }
}

// What wraps around here leads to no element: it is out of range only on meta, and beside a size of 0.
void TensorIterator::coalesce() {
  if (shape_.size() <= 1) return;
  const auto mergeable = [&](size_t inner, size_t outer) {
    if (shape_[inner] == 1 || shape_[outer] == 1) return true;
    for (int i = 0; i < count_; ++i) {
      if (wrap_mul(shape_[inner], operands_[i].strides[inner]) != operands_[i].strides[outer]) return false;
    }
    return true;
  };
  size_t last = 0;
  for (size_t d = 1; d < shape_.size(); ++d) {
    const bool merges = mergeable(last, d), moves = !merges || shape_[last] == 1;
    if (!merges) ++last;
    for (int i = 0; moves && i < count_; ++i) operands_[i].strides[last] = operands_[i].strides[d];
    shape_[last] = merges ? wrap_mul(shape_[last], shape_[d]) : shape_[d];
  }
  shape_.resize(last + 1);
  for (int i = 0; i < count_; ++i) operands_[i].strides.resize(last + 1);
}

void TensorIterator::run_range(LoopFn loop, const void* context, int64_t begin, int64_t end) const {
  char* data[kMaxOperands] = {};
  const size_t dims = shape_.size();
  for (int t = 0; t < count_; ++t) data[t] = operand(t).data;
  if (dims <= 1) {
    int64_t strides[kMaxOperands];
    for (int t = 0; t < count_; ++t) strides[t] = dims ? operand(t).strides[0] : 0;
    for (int t = 0; t < count_; ++t) data[t] += begin * strides[t];
    return loop(context, data, strides, end - begin);
  }
  // By dimension, for as many operands as there may be: loops over count_ would take longer than short runs do.
  InlineVector<std::array<int64_t, kMaxOperands>, 5> steps(dims, {});
  // Position of `begin`, then an odometer over the outer dimensions.
  DimVector position(dims, 0);
  int64_t rest = begin;
  bool by_columns = shape_[0] < 8;  // a call for each of many short rows would take longer than its elements
  for (size_t d = 0; d < dims; ++d) {
    position[d] = rest % shape_[d];
    rest /= shape_[d];
    for (int t = 0; t < count_; ++t) {
      steps[d][t] = operand(t).strides[d];
      data[t] += position[d] * steps[d][t];
      by_columns = by_columns && (d != 1 || steps[d][t] <= 128);  // 256 rows stay in the L1 cache
    }
  }
  const auto move = [&](size_t d, int64_t elements) {
    for (int t = 0; t < kMaxOperands; ++t) data[t] += elements * steps[d][t];
  };
  for (int64_t done = begin; done < end;) {
    const int64_t left = by_columns && position[0] == 0 ? (end - done) / shape_[0] : 0;
    const int64_t rows = std::min<int64_t>({shape_[1] - position[1], left, 256});
    if (rows >= 16) {
      for (int64_t column = 0; column < shape_[0]; ++column, move(0, 1)) loop(context, data, steps[1].data(), rows);
      position[0] = shape_[0];
      position[1] += rows - 1;
      move(1, rows - 1);
      done += rows * shape_[0];
    } else {
      const int64_t n = std::min(shape_[0] - position[0], end - done);
      loop(context, data, steps[0].data(), n);
      done += n;
    }
    if (done >= end) break;
    if (position[0] != 0) move(0, -std::exchange(position[0], 0));
    for (size_t d = 1; d < dims; ++d) {
      move(d, 1);
      if (++position[d] < shape_[d]) break;
      move(d, -std::exchange(position[d], 0));
    }
  }
}

}  // namespace rush
