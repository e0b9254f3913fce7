// gather and scatter, in which every element has its own index.
#include "core/ops/index/gather.h"

#include "backends/cuda/kernels/index/checked_index.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/index.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

template <class T>
struct GatherElement {
  T* out;
  const T* from;
  Positions view;
  const int64_t* index;
  CheckedIndex checked;
  __device__ void operator()(int64_t p) const {
    const int64_t offset = checked.offset(index[p]);
    out[p] = offset == kNoOffset ? T{} : from[view.offset(p) + offset];
  }
};

struct GatherElementsLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& view, const Tensor& index, const IndexedDim& where) {
    const char* op = where.op;
    for_each_index(
        op, out.numel(),
        GatherElement<T>{static_cast<T*>(out.data_ptr()), static_cast<const T*>(view.data_ptr()),
                         Positions(op, view, 0, view.dim()), index.data_ptr<int64_t>(), CheckedIndex(where)});
  }
};

void gather(const Tensor& out, const Tensor& view, const Tensor& index, const IndexedDim& where) {
  pick_bytes<GatherElementsLoop>(view.element_size())(out, view, native::contiguous(index), where);
}

template <class T>
struct AssignElement {
  T* to;
  const T* values;
  bool one_value;
  Positions view;
  const int64_t* offsets;
  __device__ void operator()(int64_t p) const {
    if (offsets[p] != kNoOffset) to[view.offset(p) + offsets[p]] = values[one_value ? 0 : p];
  }
};

struct AssignElementsLoop {
  template <class T>
  static void run(const char* op, const Tensor& view, const Tensor& offsets, const Tensor& src) {
    for_each_index(op, offsets.numel(),
                   AssignElement<T>{static_cast<T*>(view.data_ptr()), static_cast<const T*>(src.data_ptr()),
                                    src.numel() == 1, Positions(op, view, 0, view.dim()), offsets.data_ptr<int64_t>()});
  }
};

void scatter(const Tensor& view, const Tensor& offsets, const Tensor& src, int64_t, IndexWrite write) {
  const char* op = kernels::scatter.name();
  if (write == IndexWrite::Assign) return pick_bytes<AssignElementsLoop>(view.element_size())(op, view, offsets, src);
  const Positions starts(op, view, 0, view.dim());
  const ScatterPlan plan{view.data_ptr(), Positions(),    Positions(),      offsets.data_ptr<int64_t>(),
                         offsets.numel(), src.data_ptr(), src.numel() == 1, starts.is_still() ? Positions() : starts};
  const int64_t bound = static_cast<int64_t>(view.impl()->storage()->nbytes()) / view.element_size();
  scatter_combined(op, view.scalar_type(), plan, bound, write);
}

struct MeanLoop {
  template <class T>
  static void run(TensorIterator& it) {
    elementwise<T, T, int64_t>(it, functors::DivideByCount());
  }
};

void scatter_mean(TensorIterator& it) { pick<MeanLoop>(AllTypes(), it.dtype(), it.op())(it); }

}  // namespace

void register_gather() {
  kernels::gather.set(kCUDA, gather);
  kernels::scatter.set(kCUDA, scatter);
  kernels::scatter_mean.set(kCUDA, scatter_mean);
}

}  // namespace rush::cuda
