// Where the elements of a slice lie, and how they are written: used by the kernels that copy slices between a strided
// and a row-major tensor.
#pragma once
#include <algorithm>
#include <vector>

#include "backends/functors/index.h"
#include "backends/functors/pick.h"
#include "core/ops/index/index.h"
#include "core/tensor.h"

namespace rush::cpu {

// Some dimensions of a view: how far from its start their elements lie, in row-major order.
class Block {
 public:
  Block() = default;
  Block(const Tensor& view, int64_t first, int64_t last) { append(view, first, last); }
  // The dimensions [first, last) follow those that it has.
  void append(const Tensor& view, int64_t first, int64_t last) {
    for (int64_t d = first; d < last; ++d) {
      const int64_t size = view.size(d), stride = view.stride(d);
      count_ *= size;
      if (size == 1) continue;
      if (!sizes_.empty() && strides_.back() == size * stride) {  // coalesces with the previous dimension
        sizes_.back() *= size;
        strides_.back() = stride;
      } else {
        sizes_.push_back(size);
        strides_.push_back(stride);
      }
    }
  }
  int64_t count() const { return count_; }
  int64_t offset(int64_t i) const {
    if (sizes_.empty()) return 0;
    int64_t at = 0;
    for (size_t d = sizes_.size(); d-- > 1;) {
      at += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return at + i * strides_[0];
  }
  bool is_run() const { return sizes_.size() <= 1; }
  int64_t stride() const { return sizes_.empty() ? 1 : strides_[0]; }
  bool is_contiguous() const { return is_run() && stride() == 1; }

 private:
  DimVector sizes_, strides_;
  int64_t count_ = 1;
};

// body(row, first, last) for the parts [first, last) of rows of `width` elements that [begin, end) of all elements has.
template <class Body>
void for_each_row(int64_t begin, int64_t end, int64_t width, const Body& body) {
  int64_t row = begin / width, first = begin % width;
  for (int64_t at = begin; at < end; ++row, first = 0) {
    const int64_t last = std::min(width, first + end - at);
    body(row, first, last);
    at += last - first;
  }
}

// The offsets within a slice: a formula where they are evenly spaced, a table otherwise.
class SliceOffsets {
 public:
  explicit SliceOffsets(const Block& block) : stride_(block.stride()) {
    if (block.is_run()) return;
    table_.resize(static_cast<size_t>(block.count()));
    for (int64_t i = 0; i < block.count(); ++i) table_[static_cast<size_t>(i)] = block.offset(i);
  }
  // body(i, offset of element i) for i in [begin, end).
  template <class Body>
  RUSH_ALWAYS_INLINE void for_each(int64_t begin, int64_t end, const Body& body) const {
    if (!table_.empty()) {
      for (int64_t i = begin; i < end; ++i) body(i, table_[static_cast<size_t>(i)]);
    } else if (stride_ == 1) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) body(i, i);
    } else {
      for (int64_t i = begin; i < end; ++i) body(i, i * stride_);
    }
  }

 private:
  int64_t stride_;
  std::vector<int64_t> table_;
};

// base[offset[i]] = write(base[offset[i]], value[i * step]) for i in [0, n), in this order: offsets may be the same.
template <class Write, class T>
RUSH_NOINLINE void write_elements(const Write& write, T* base, const int64_t* offset, int64_t n, const T* value,
                                  int64_t step) {
  for (int64_t i = 0; i < n; ++i) base[offset[i]] = write(base[offset[i]], value[i * step]);
}

// Loop<Write>::run of the functor for `write` and of the view's dtype, or of its element size where nothing is
// computed. It is static because GCC takes the instances of two files for one where their Loops, in unnamed namespaces,
// have one name.
template <template <class> class Loop, class... Args>
static void run_write(IndexWrite write, const char* op, const Tensor& view, const Args&... args) {
  const auto with = [&](auto functor, auto types) {
    pick<Loop<decltype(functor)>>(types, view.scalar_type(), op)(view, args...);
  };
  switch (write) {
    case IndexWrite::Assign: return pick_bytes<Loop<functors::WriteAssign>>(view.element_size())(view, args...);
    case IndexWrite::Add: return with(functors::WriteAdd(), AllTypes());
    case IndexWrite::Multiply: return with(functors::WriteMultiply(), AllTypes());
    case IndexWrite::Minimum: return with(functors::WriteMinimum(), RealAndBoolTypes());
    case IndexWrite::Maximum: return with(functors::WriteMaximum(), RealAndBoolTypes());
  }
}

}  // namespace rush::cpu
