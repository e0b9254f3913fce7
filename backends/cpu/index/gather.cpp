#include "core/ops/index/gather.h"

#include "backends/cpu/index/slice_offsets.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// The index's dimensions in three: those before `dim`, `dim` itself, those after it.
struct Split {
  Block outer, inner;
  int64_t length;  // along dim
  Split(const Tensor& view, int64_t dim)
      : outer(view, 0, std::min(dim, view.dim())),
        inner(view, std::min(dim + 1, view.dim()), view.dim()),
        length(view.dim() == 0 ? 1 : view.size(dim)) {}
};

struct GatherLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t dim) {
    const Split split(view, dim);
    const SliceOffsets slice(split.inner);
    const int64_t width = split.inner.count();
    const int64_t* offset = offsets.data_ptr<int64_t>();
    const T* from = static_cast<const T*>(view.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    if (out.numel() == 0) return;
    // A row is `width` elements at one position of the outer dimensions and of `dim`.
    parallel_for(0, split.outer.count() * split.length, std::max<int64_t>(1, kGrain / width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin, o = begin / split.length; row < end; ++o) {
                     const int64_t last = std::min(end, (o + 1) * split.length);
                     const T* base = from + split.outer.offset(o);
                     if (width == 1) {
                       for (; row < last; ++row) to[row] = base[offset[row]];
                       continue;
                     }
                     for (; row < last; ++row) {
                       const int64_t* at_row = offset + row * width;
                       T* into = to + row * width;
                       slice.for_each(0, width, [&](int64_t i, int64_t at) { into[i] = base[at + at_row[i]]; });
                     }
                   }
                 });
  }
};

void gather(const Tensor& out, const Tensor& view, const Tensor& index, const IndexedDim& where) {
  pick_bytes<GatherLoop>(view.element_size())(out, view, native::offsets_of(index, where), where.dim);
}

template <class Write>
struct ScatterLoop {
  // The threads share the positions outside `dim` between them: along it, two offsets may be the same.
  template <class T>
  static void run(const Tensor& view, const Tensor& offsets, const Tensor& src, int64_t dim) {
    const Split split(view, dim);
    const SliceOffsets slice(split.inner);
    const int64_t width = split.inner.count(), length = split.length;
    const int64_t* offset = offsets.data_ptr<int64_t>();
    const T* from = static_cast<const T*>(src.data_ptr());
    T* to = static_cast<T*>(view.data_ptr());
    if (offsets.numel() == 0) return;
    const bool one_value = src.numel() == 1;
    const Write write;
    const auto write_columns = [&](int64_t o, int64_t begin, int64_t end) {
      T* base = to + split.outer.offset(o);
      if (width == 1) {
        return write_elements(write, base, offset + o * length, length, one_value ? from : from + o * length,
                              !one_value);
      }
      for (int64_t row = o * length; row < (o + 1) * length; ++row) {
        const int64_t* at_row = offset + row * width;
        const T* value = one_value ? from : from + row * width;
        slice.for_each(begin, end, [&](int64_t i, int64_t at) {
          T& target = base[at + at_row[i]];
          target = write(target, one_value ? *value : value[i]);
        });
      }
    };
    parallel_for(0, split.outer.count() * width, std::max<int64_t>(1, kGrain / length),
                 [&](int64_t begin, int64_t end) { for_each_row(begin, end, width, write_columns); });
  }
};

void scatter(const Tensor& view, const Tensor& offsets, const Tensor& src, int64_t dim, IndexWrite write) {
  run_write<ScatterLoop>(write, "scatter", view, offsets, src, dim);
}

struct MeanLoop {
  template <class T>
  static void run(TensorIterator& it) {
    pointwise<T, T, int64_t>(it, functors::DivideByCount());
  }
};

void scatter_mean(TensorIterator& it) { pick<MeanLoop>(AllTypes(), it.dtype(), it.op())(it); }

}  // namespace

void register_gather() {
  kernels::gather.set(kCPU, gather);
  kernels::scatter.set(kCPU, scatter);
  kernels::scatter_mean.set(kCPU, scatter_mean);
}

}  // namespace rush::cpu
