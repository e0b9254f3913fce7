#include "core/ops/reduce/extrema.h"

#include "core/ops/reduce/ordered.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

static Tensor reduce_extreme(const char* op, const kernels::ReduceKernel& kernel, const Tensor& self, IntArrayRef dim,
                             bool keepdim) {
  check_ordered(op, self);
  const Reduction reduction(op, self, dim, keepdim);
  reduction.check_not_empty(op, self);
  const Tensor output = reduction.allocate(self, self.scalar_type());
  kernel(self.device().type, output, self, reduction.dims);
  return reduction.finish(output);
}

template <kernels::ReduceKernel& kernel>
static Tensor extreme_value(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return reduce_extreme(kernel.name(), kernel, self, dim, keepdim);
}
static Tensor max(const Tensor& self) { return reduce_extreme("max", kernels::amax, self, {}, false); }
static Tensor min(const Tensor& self) { return reduce_extreme("min", kernels::amin, self, {}, false); }

static std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_ordered("aminmax", self);
  const Reduction reduction("aminmax", self, dim ? IntArrayRef(*dim) : IntArrayRef(), keepdim);
  reduction.check_not_empty("aminmax", self);
  const Tensor smallest = reduction.allocate(self, self.scalar_type());
  const Tensor largest = reduction.allocate(self, self.scalar_type());
  kernels::aminmax(self.device().type, smallest, largest, self, reduction.dims);
  return {reduction.finish(smallest), reduction.finish(largest)};
}

struct Lines {
  Tensor input;  // row-major
  AlongDim shape;
};

// A tensor that is row-major once `dim` is moved, as a channels-last one along its channels, is not copied: the results
// lie in the order of the other dimensions either way.
static Lines lines_along(const Tensor& self, int64_t dim) {
  for (int64_t to = self.dim(); to-- > 0 && !self.is_contiguous();) {
    DimVector sizes(self.sizes()), strides(self.strides());
    for (DimVector* order : {&sizes, &strides}) {
      const int64_t own = (*order)[dim];
      order->erase(order->begin() + dim);
      order->insert(order->begin() + to, own);
    }
    const Tensor moved = detail::make_view(self, sizes, strides, self.storage_offset());
    if (moved.is_contiguous()) return {moved, AlongDim(sizes, to)};
  }
  return {contiguous(self), AlongDim(self.sizes(), dim)};
}

template <bool largest>
static std::tuple<Tensor, Tensor> extreme_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const char* op = largest ? "max" : "min";
  check_ordered(op, self);
  const Reduction reduction(op, self, dim, keepdim);
  reduction.check_not_empty(op, self);
  const Tensor values = reduction.allocate(self, self.scalar_type());
  const Tensor indices = reduction.allocate(self, kInt64);
  const Lines lines = lines_along(self, reduction.dims.empty() ? 0 : reduction.dims[0]);
  kernels::extreme(self.device().type, values, indices, lines.input, lines.shape, largest);
  return {reduction.finish(values), reduction.finish(indices)};
}

template <bool largest>
static Tensor arg_extreme(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const char* op = largest ? "argmax" : "argmin";
  check_ordered(op, self);
  const Reduction reduction(op, self, dim ? IntArrayRef(*dim) : IntArrayRef(), keepdim);
  reduction.check_not_empty(op, self);
  const Tensor indices = reduction.allocate(self, kInt64);
  const Lines lines =
      dim && self.dim() ? lines_along(self, reduction.dims[0]) : Lines{contiguous(self), AlongDim(1, self.numel(), 1)};
  kernels::extreme(self.device().type, Tensor(), indices, lines.input, lines.shape, largest);
  return reduction.finish(indices);
}

}  // namespace native

void register_extrema_ops(Registry& r) {
  r.native(ops::amax, native::extreme_value<kernels::amax>);
  r.native(ops::amin, native::extreme_value<kernels::amin>);
  r.native(ops::aminmax, native::aminmax);
  r.native(ops::max, native::max);
  r.native(ops::min, native::min);
  r.native(ops::max_dim, native::extreme_dim<true>);
  r.native(ops::min_dim, native::extreme_dim<false>);
  r.native(ops::argmax, native::arg_extreme<true>);
  r.native(ops::argmin, native::arg_extreme<false>);
}

Tensor Tensor::amax(IntArrayRef dim, bool keepdim) const { return ops::amax(*this, dim, keepdim); }
Tensor Tensor::amin(IntArrayRef dim, bool keepdim) const { return ops::amin(*this, dim, keepdim); }
std::tuple<Tensor, Tensor> Tensor::aminmax(std::optional<int64_t> dim, bool keepdim) const {
  return ops::aminmax(*this, dim, keepdim);
}
Tensor Tensor::max() const { return ops::max(*this); }
Tensor Tensor::min() const { return ops::min(*this); }
std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const { return ops::max_dim(*this, dim, keepdim); }
std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const { return ops::min_dim(*this, dim, keepdim); }
Tensor Tensor::argmax(std::optional<int64_t> dim, bool keepdim) const { return ops::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const { return ops::argmin(*this, dim, keepdim); }

}  // namespace rush
