#include "core/ops/reduce/order_statistics.h"

#include <limits>

#include "core/ops/basic.h"
#include "core/ops/reduce/ordered.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

// (values, indices) of one element along `dim`, which `run(values, indices, input, shape)` selects.
template <class Run>
std::tuple<Tensor, Tensor> select_dim(const char* op, const Tensor& self, int64_t dim, bool keepdim, const Run& run) {
  check_ordered(op, self);
  const Reduction reduction(op, self, dim, keepdim);
  reduction.check_not_empty(op, self);
  const Tensor values = reduction.allocate(self, self.scalar_type());
  const Tensor indices = reduction.allocate(self, kInt64);
  run(values, indices, contiguous(self), AlongDim(self.sizes(), reduction.dims.empty() ? 0 : reduction.dims[0]));
  return {reduction.finish(values), reduction.finish(indices)};
}

template <bool ignore_nan>
Tensor median(const Tensor& self) {
  const char* op = ignore_nan ? "nanmedian" : "median";
  check_ordered(op, self);
  const Tensor value = detail::empty_contiguous({}, self.scalar_type(), self.device());
  if (self.numel() == 0) {
    RUSH_CHECK_INDEX(self.is_floating_point(), op, ": the tensor of shape ", self.sizes(), " has no elements");
    return ops::fill_(const_cast<Tensor&>(value), std::numeric_limits<double>::quiet_NaN());
  }
  const Tensor index = detail::empty_contiguous({}, kInt64, self.device());
  kernels::median(self.device().type, value, index, contiguous(self), AlongDim(1, self.numel(), 1), ignore_nan);
  return value;
}

}  // namespace

static std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  return select_dim("kthvalue", self, dim, keepdim,
                    [&](const auto& values, const auto& indices, const Tensor& input, const AlongDim& shape) {
                      RUSH_CHECK_VALUE(k >= 1 && k <= shape.size,
                                       "kthvalue: selected number k out of range for dimension ", dim, ": k is ", k,
                                       ", the dimension has ", shape.size, " elements");
                      kernels::kthvalue(self.device().type, values, indices, input, shape, k);
                    });
}

template <bool ignore_nan>
static std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const char* op = ignore_nan ? "nanmedian" : "median";
  return select_dim(op, self, dim, keepdim,
                    [&](const auto& values, const auto& indices, const Tensor& input, const AlongDim& shape) {
                      kernels::median(self.device().type, values, indices, input, shape, ignore_nan);
                    });
}

static std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  return select_dim("mode", self, dim, keepdim,
                    [&](const auto& values, const auto& indices, const Tensor& input, const AlongDim& shape) {
                      kernels::mode(self.device().type, values, indices, input, shape);
                    });
}

}  // namespace native

void register_order_statistics_ops(Registry& r) {
  r.native(ops::kthvalue, native::kthvalue);
  r.native(ops::median, native::median<false>);
  r.native(ops::median_dim, native::median_dim<false>);
  r.native(ops::nanmedian, native::median<true>);
  r.native(ops::nanmedian_dim, native::median_dim<true>);
  r.native(ops::mode, native::mode);
}

std::tuple<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return ops::kthvalue(*this, k, dim, keepdim);
}
Tensor Tensor::median() const { return ops::median(*this); }
std::tuple<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const {
  return ops::median_dim(*this, dim, keepdim);
}
Tensor Tensor::nanmedian() const { return ops::nanmedian(*this); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim) const {
  return ops::nanmedian_dim(*this, dim, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::mode(int64_t dim, bool keepdim) const { return ops::mode(*this, dim, keepdim); }

}  // namespace rush
