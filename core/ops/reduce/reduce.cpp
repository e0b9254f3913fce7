#include "core/ops/reduce/reduce.h"

#include <algorithm>

#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

Reduction::Reduction(const char* op, const Tensor& self, OptionalIntArrayRef dim, bool keepdim)
    : dims(wrap_dims(dim ? *dim : IntArrayRef(), self.dim(), op, true)), kept(self.sizes()) {
  if (self.dim() == 0) dims.clear();
  std::sort(dims.begin(), dims.end());
  for (int64_t d : dims) kept[d] = 1;
  size_t next = 0;
  for (size_t d = 0; d < kept.size(); ++d) {
    const bool reduced = next < dims.size() && dims[next] == static_cast<int64_t>(d);
    next += reduced;
    if (keepdim || !reduced) sizes.push_back(kept[d]);
  }
}

void Reduction::check_not_empty(const char* op, const Tensor& self) const {
  for (int64_t d : dims) {
    RUSH_CHECK_INDEX(self.sizes()[d] != 0, op, ": expected dimension ", d, " to have elements, the tensor has shape ",
                     self.sizes());
  }
}

// sum and prod: integers accumulate as int64, whatever dtype is asked for; as truth values only if bool is.
template <kernels::ReduceKernel& kernel>
static Tensor accumulate(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  const Reduction reduction(kernel.name(), self, dim, keepdim);
  const bool integral = is_integral(self.scalar_type(), true);
  const ScalarType type = dtype.value_or(integral ? kInt64 : self.scalar_type());
  const bool as_int64 = integral && is_integral(type, false);
  const Tensor input = as_int64 ? self : as_dtype(self, type);
  const Tensor output = reduction.allocate(self, is_integral(type, true) ? kInt64 : type);
  kernel(self.device().type, output, input, reduction.dims);
  return as_dtype(reduction.finish(output), type);
}

template <kernels::ReduceKernel& kernel>
static Tensor accumulate_all(const Tensor& self, std::optional<ScalarType> dtype) {
  return accumulate<kernel>(self, std::nullopt, false, dtype);
}

static Tensor prod_dim(const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype) {
  return accumulate<kernels::prod>(self, dim, keepdim, dtype);
}

static Tensor nansum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  RUSH_CHECK_TYPE(!self.is_complex(), "nansum: expected a real tensor, got ", self.scalar_type());
  // Integers have no NaN.
  if (is_integral(self.scalar_type(), true)) return accumulate<kernels::sum>(self, dim, keepdim, dtype);
  const Reduction reduction("nansum", self, dim, keepdim);
  const ScalarType type = dtype.value_or(self.scalar_type());
  RUSH_CHECK_TYPE(is_floating_point(type), "nansum: expected a floating dtype, got ", type);
  const Tensor output = reduction.allocate(self, type);
  kernels::nansum(self.device().type, output, as_dtype(self, type), reduction.dims);
  return reduction.finish(output);
}

static Tensor mean_dim(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(self.scalar_type());
  RUSH_CHECK_TYPE(is_differentiable(type),
                  "mean: could not infer output dtype, which must be either a floating point or complex dtype, from ",
                  type, "; convert the input, or pass such a dtype");
  const Reduction reduction("mean", self, dim, keepdim);
  const Tensor output = reduction.allocate(self, type);
  kernels::mean(self.device().type, output, as_dtype(self, type), reduction.dims);
  return reduction.finish(output);
}

static Tensor mean(const Tensor& self, std::optional<ScalarType> dtype) { return mean_dim(self, {}, false, dtype); }

// any and all are bool, but uint8 for uint8: what PyTorch had before it had bool.
template <kernels::ReduceKernel& kernel>
static Tensor logical(const Tensor& self, const Reduction& reduction) {
  const Tensor output = reduction.allocate(self, kBool);
  kernel(self.device().type, output, self, reduction.dims);
  return as_dtype(reduction.finish(output), self.scalar_type() == kUInt8 ? kUInt8 : kBool);
}

template <kernels::ReduceKernel& kernel>
static Tensor logical_all(const Tensor& self) {
  return logical<kernel>(self, Reduction(kernel.name(), self, std::nullopt, false));
}
template <kernels::ReduceKernel& kernel>
static Tensor logical_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return logical<kernel>(self, Reduction(kernel.name(), self, dim, keepdim));
}
template <kernels::ReduceKernel& kernel>
static Tensor logical_dims(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  Reduction reduction(kernel.name(), self, dim, keepdim);
  if (dim && dim->empty()) {
    reduction.dims.clear();
    reduction.kept = reduction.sizes = self.sizes();
  }
  return logical<kernel>(self, reduction);
}

static Tensor count_nonzero_dims(const Tensor& self, IntArrayRef dim) {
  const Reduction reduction("count_nonzero", self, dim, false);
  const Tensor output = reduction.allocate(self, kInt64);
  kernels::count_nonzero(self.device().type, output, self, reduction.dims);
  return reduction.finish(output);
}

static Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return count_nonzero_dims(self, dim ? IntArrayRef(*dim) : IntArrayRef());
}

static Tensor trace(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() == 2, "trace: expected a matrix, got shape ", self.sizes());
  return ops::sum(ops::diagonal(self, 0, 0, 1), std::nullopt);
}

}  // namespace native

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  const size_t lead = self.sizes().size() - size.size();
  DimVector dims;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (d < lead || (size[d - lead] == 1 && self.sizes()[d] != 1)) dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return self;
  const bool has_views = self.layout() == kStrided;
  const Tensor summed = ops::sum_dim(self, IntArrayRef(dims), lead == 0 || has_views, std::nullopt);
  return summed.sizes() == size ? summed : summed.view(size);
}

void register_reduce_ops(Registry& r) {
  r.native(ops::sum, native::accumulate_all<kernels::sum>);
  r.native(ops::sum_dim, native::accumulate<kernels::sum>);
  r.native(ops::nansum, native::nansum);
  r.native(ops::mean, native::mean);
  r.native(ops::mean_dim, native::mean_dim);
  r.native(ops::prod, native::accumulate_all<kernels::prod>);
  r.native(ops::prod_dim, native::prod_dim);
  r.native(ops::any, native::logical_all<kernels::any>);
  r.native(ops::any_dim, native::logical_dim<kernels::any>);
  r.native(ops::any_dims, native::logical_dims<kernels::any>);
  r.native(ops::all, native::logical_all<kernels::all>);
  r.native(ops::all_dim, native::logical_dim<kernels::all>);
  r.native(ops::all_dims, native::logical_dims<kernels::all>);
  r.native(ops::count_nonzero, native::count_nonzero);
  r.native(ops::count_nonzero_dim, native::count_nonzero_dims);
  r.composite(ops::trace, native::trace);
}

Tensor Tensor::sum(std::optional<ScalarType> dtype) const { return ops::sum(*this, dtype); }
Tensor Tensor::sum(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const {
  return ops::sum_dim(*this, dim, keepdim, dtype);
}
Tensor Tensor::nansum(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const {
  return ops::nansum(*this, dim, keepdim, dtype);
}
Tensor Tensor::mean(std::optional<ScalarType> dtype) const { return ops::mean(*this, dtype); }
Tensor Tensor::mean(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const {
  return ops::mean_dim(*this, dim, keepdim, dtype);
}
Tensor Tensor::prod(std::optional<ScalarType> dtype) const { return ops::prod(*this, dtype); }
Tensor Tensor::prod(int64_t dim, bool keepdim, std::optional<ScalarType> dtype) const {
  return ops::prod_dim(*this, dim, keepdim, dtype);
}
Tensor Tensor::any() const { return ops::any(*this); }
Tensor Tensor::any(int64_t dim, bool keepdim) const { return ops::any_dim(*this, dim, keepdim); }
Tensor Tensor::any(OptionalIntArrayRef dim, bool keepdim) const { return ops::any_dims(*this, dim, keepdim); }
Tensor Tensor::any(std::initializer_list<int64_t> dim, bool keepdim) const {
  return ops::any_dims(*this, dim, keepdim);
}
Tensor Tensor::all() const { return ops::all(*this); }
Tensor Tensor::all(int64_t dim, bool keepdim) const { return ops::all_dim(*this, dim, keepdim); }
Tensor Tensor::all(OptionalIntArrayRef dim, bool keepdim) const { return ops::all_dims(*this, dim, keepdim); }
Tensor Tensor::all(std::initializer_list<int64_t> dim, bool keepdim) const {
  return ops::all_dims(*this, dim, keepdim);
}
Tensor Tensor::sum_to_size(IntArrayRef size) const {
  RUSH_CHECK_VALUE(broadcast_shapes(sizes(), size, "sum_to_size") == DimVector(sizes()), "sum_to_size: sizes ", size,
                   " do not broadcast to ", sizes());
  return rush::sum_to_size(*this, size);
}
Tensor Tensor::count_nonzero(OptionalIntArrayRef dim) const {
  return dim ? ops::count_nonzero_dim(*this, *dim) : ops::count_nonzero(*this, std::nullopt);
}
Tensor Tensor::trace() const { return ops::trace(*this); }

}  // namespace rush
