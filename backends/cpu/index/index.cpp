// Indexing by offsets, see the Note in core/ops/index/index.h.
#include "core/ops/index/index.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/index/slice_offsets.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "core/ops/view/copy.h"

namespace rush::cpu {

namespace {

void index_offsets(const Tensor& offsets, const Tensor& index, const IndexedDim& where, bool add) {
  const Tensor dense = native::contiguous(index);
  const int64_t* from = dense.data_ptr<int64_t>();
  int64_t* to = offsets.data_ptr<int64_t>();
  const int64_t size = where.size, stride = where.stride, lowest = where.wraps ? -size : 0;
  // A block is checked before it is converted: the compiler does not vectorise a loop that may throw.
  constexpr int64_t kBlock = 1024;
  parallel_for(0, offsets.numel(), kGrain, [=, &where](int64_t begin, int64_t end) {
    for (int64_t next = 0; begin < end; begin = next) {
      next = std::min(begin + kBlock, end);
      int64_t least = from[begin], most = least;
      for (int64_t i = begin; i < next; ++i) least = std::min(least, from[i]), most = std::max(most, from[i]);
      RUSH_CHECK_INDEX(least >= lowest && most < size, where.op, ": index out of range in self: index ",
                       least < lowest ? least : most, " is out of bounds for dimension ", where.dim, " with size ",
                       size);
      const auto offset_of = [=](int64_t at) { return (at < 0 ? at + size : at) * stride; };
      if (add) {
        for (int64_t i = begin; i < next; ++i) to[i] += offset_of(from[i]);
      } else {
        for (int64_t i = begin; i < next; ++i) to[i] = offset_of(from[i]);
      }
    }
  });
}

struct GatherLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t before) {
    const Block outer(view, 0, before), inner(view, before, view.dim());
    const SliceOffsets slice(inner);
    const int64_t n = offsets.numel(), length = inner.count();
    const int64_t* offset = offsets.data_ptr<int64_t>();
    const T* from = static_cast<const T*>(view.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    // A row is one slice of the result: `length` elements.
    const auto copy_rows = [&](const T* base, int64_t first, int64_t last, T* into) {
      if (length == 1) {
        for (int64_t j = first; j < last; ++j) *into++ = base[offset[j]];
      } else if (inner.is_contiguous()) {
        for (int64_t j = first; j < last; ++j, into += length) {
          std::memcpy(into, base + offset[j], static_cast<size_t>(length) * sizeof(T));
        }
      } else {
        for (int64_t j = first; j < last; ++j, into += length) {
          const T* row = base + offset[j];
          slice.for_each(0, length, [&](int64_t i, int64_t at) { into[i] = row[at]; });
        }
      }
    };
    if (out.numel() == 0) return;
    parallel_for(0, outer.count() * n, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
      for_each_row(begin, end, n, [&](int64_t o, int64_t first, int64_t last) {
        copy_rows(from + outer.offset(o), first, last, to + (o * n + first) * length);
      });
    });
  }
};

void index_gather(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t before) {
  pick_bytes<GatherLoop>(view.element_size())(out, view, offsets, before);
}

template <class Write>
struct ScatterLoop {
  // The threads share the elements of a slice between them, never the slices: two offsets may be the same.
  template <class T>
  static void run(const Tensor& view, const Tensor& offsets, const Tensor& values, int64_t before) {
    const Block outer(view, 0, before), inner(view, before, view.dim());
    const SliceOffsets slice(inner);
    const int64_t n = offsets.numel(), length = inner.count();
    const int64_t* offset = offsets.data_ptr<int64_t>();
    const T* from = static_cast<const T*>(values.data_ptr());
    T* to = static_cast<T*>(view.data_ptr());
    if (n == 0 || length == 0) return;
    const bool one_value = values.numel() == 1;
    const int64_t value_step = one_value ? 0 : length;
    const Write write;
    const auto write_slices = [&](int64_t o, int64_t begin, int64_t end) {
      T* base = to + outer.offset(o);
      const T* value = from + o * n * value_step;
      if (length == 1) return write_elements(write, base, offset, n, value, value_step);
      for (int64_t j = 0; j < n; ++j, value += value_step) {
        T* row = base + offset[j];
        if (one_value) {
          slice.for_each(begin, end, [&](int64_t, int64_t at) { row[at] = write(row[at], *from); });
        } else {
          slice.for_each(begin, end, [&](int64_t i, int64_t at) { row[at] = write(row[at], value[i]); });
        }
      }
    };
    parallel_for(0, outer.count() * length, std::max<int64_t>(1, kGrain / n),
                 [&](int64_t begin, int64_t end) { for_each_row(begin, end, length, write_slices); });
  }
};

void index_scatter(const Tensor& view, const Tensor& offsets, const Tensor& values, int64_t before, IndexWrite write,
                   const Tensor& /*order*/) {
  run_write<ScatterLoop>(write, "index_put_", view, offsets, values, before);
}

void offset_order(const Tensor& order, const Tensor& offsets, int64_t /*bound*/) {
  int64_t* const numbers = order.data_ptr<int64_t>();
  const int64_t* const offset = offsets.data_ptr<int64_t>();
  std::iota(numbers, numbers + order.numel(), int64_t{0});
  std::stable_sort(numbers, numbers + order.numel(), [&](int64_t a, int64_t b) { return offset[a] < offset[b]; });
}

}  // namespace

void register_index() {
  kernels::index_offsets.set(kCPU, index_offsets);
  kernels::index_gather.set(kCPU, index_gather);
  kernels::index_scatter.set(kCPU, index_scatter);
  kernels::offset_order.set(kCPU, offset_order);
}

}  // namespace rush::cpu
