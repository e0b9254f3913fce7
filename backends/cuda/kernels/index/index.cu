// Indexing by offsets, see Note [Indexing by offsets] in core/ops/index/index.h. An index out of range is found on the
// device: its offset becomes kNoOffset, whose slice reads as zeros and is not written.
#include "core/ops/index/index.h"

#include "backends/cuda/kernels/index/checked_index.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/optional_data.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

struct OffsetOf {
  int64_t* to;
  const int64_t* index;
  CheckedIndex checked;
  bool add;

  __device__ void operator()(int64_t i) const {
    const int64_t offset = checked.offset(index[i]);
    if (!add || offset == kNoOffset) {
      to[i] = offset;
    } else if (to[i] != kNoOffset) {
      to[i] += offset;
    }
  }
};

void index_offsets(const Tensor& offsets, const Tensor& index, const IndexedDim& where, bool add) {
  const Tensor dense = native::contiguous(index);
  for_each_index(where.op, offsets.numel(),
                 OffsetOf{offsets.data_ptr<int64_t>(), dense.data_ptr<int64_t>(), CheckedIndex(where), add});
}

// `each` elements of a slice a thread: those of a 16-byte access where slices are contiguous.
template <class T>
struct GatherSlices {
  T* out;
  const T* from;
  Positions outer, inner;
  const int64_t* offsets;
  int64_t n;
  int each;

  __device__ void operator()(int64_t task) const {
    const int64_t per_slice = inner.count / each, row = task / per_slice, i = task % per_slice * each;
    const int64_t offset = offsets[row % n];
    T* to = out + row * inner.count + i;
    if (offset == kNoOffset) {
      for (int k = 0; k < each; ++k) to[k] = T{};
      return;
    }
    const T* base = from + outer.offset(row / n) + offset;
    if (each == 1) {
      *to = base[inner.offset(i)];
    } else if (reinterpret_cast<uintptr_t>(base + i) % 16 == 0) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(base + i);
    } else {
      for (int k = 0; k < each; ++k) to[k] = base[i + k];
    }
  }
};

struct GatherSlicesLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t before) {
    if (out.numel() == 0) return;
    const char* op = kernels::index_gather.name();
    GatherSlices<T> gather{static_cast<T*>(out.data_ptr()),
                           static_cast<const T*>(view.data_ptr()),
                           Positions(op, view, 0, before),
                           Positions(op, view, before, view.dim()),
                           offsets.data_ptr<int64_t>(),
                           offsets.numel(),
                           1};
    constexpr int kLanes = 16 / sizeof(T);
    const bool aligned = reinterpret_cast<uintptr_t>(gather.out) % 16 == 0;
    if (gather.inner.is_run() && gather.inner.count % kLanes == 0 && aligned) gather.each = kLanes;
    for_each_index(op, out.numel() / gather.each, gather);
  }
};

void index_gather(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t before) {
  pick_bytes<GatherSlicesLoop>(view.element_size())(out, view, offsets, before);
}

template <class T>
struct AssignSlices {
  ScatterPlan plan;
  __device__ void operator()(int64_t task) const {
    const int64_t i = task % plan.inner.count, row = task / plan.inner.count, offset = plan.offsets[row % plan.n];
    if (offset == kNoOffset) return;
    static_cast<T*>(plan.to)[plan.outer.offset(row / plan.n) + offset + plan.inner.offset(i)] =
        static_cast<const T*>(plan.values)[plan.one_value ? 0 : task];
  }
};

struct AssignSlicesLoop {
  template <class T>
  static void run(const char* op, const ScatterPlan& plan) {
    for_each_index(op, plan.count(), AssignSlices<T>{plan});
  }
};

void index_scatter(const Tensor& view, const Tensor& offsets, const Tensor& values, int64_t before, IndexWrite write,
                   const Tensor& order) {
  const char* op = kernels::index_scatter.name();
  const ScatterPlan plan{view.data_ptr(),
                         Positions(op, view, 0, before),
                         Positions(op, view, before, view.dim()),
                         offsets.data_ptr<int64_t>(),
                         offsets.numel(),
                         values.data_ptr(),
                         values.numel() == 1};
  if (write == IndexWrite::Assign) return pick_bytes<AssignSlicesLoop>(view.element_size())(op, plan);
  const int64_t bound = static_cast<int64_t>(view.impl()->storage()->nbytes()) / view.element_size();
  scatter_combined(op, view.scalar_type(), plan, bound, write, data_or_null<int64_t>(order));
}

void offset_order(const Tensor& order, const Tensor& offsets, int64_t bound) {
  sort_offsets(kernels::offset_order.name(), offsets.data_ptr<int64_t>(), offsets.numel(), std::max<int64_t>(bound, 1),
               order.data_ptr<int64_t>());
}

}  // namespace

void register_index() {
  kernels::index_offsets.set(kCUDA, index_offsets);
  kernels::index_gather.set(kCUDA, index_gather);
  kernels::index_scatter.set(kCUDA, index_scatter);
  kernels::offset_order.set(kCUDA, offset_order);
}

}  // namespace rush::cuda
