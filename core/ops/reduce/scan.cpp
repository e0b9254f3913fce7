#include "core/ops/reduce/scan.h"

#include "core/ops/basic.h"
#include "core/ops/reduce/ordered.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

// cumsum and cumprod: integers accumulate as int64, whatever the dtype that is asked for.
template <kernels::ScanKernel& kernel>
static Tensor accumulate(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  dim = wrap_dim(dim, self.dim(), kernel.name());
  const bool integral = is_integral(self.scalar_type(), true);
  const ScalarType type = dtype.value_or(integral ? kInt64 : self.scalar_type());
  const bool as_int64 = integral && is_integral(type, true);
  const Tensor input = contiguous(as_int64 ? self : as_dtype(self, type));
  const ScalarType computed = is_integral(type, true) ? kInt64 : type;
  const Tensor output = detail::empty_contiguous(self.sizes(), computed, self.device());
  kernel(self.device().type, output, input, AlongDim(self.sizes(), dim));
  return as_dtype(output, type);
}

template <kernels::ScanKernel& kernel>
static Tensor& accumulate_(Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  RUSH_CHECK_TYPE(!dtype || *dtype == self.scalar_type(), kernel.name(), "_: the result would be ", *dtype,
                  ", the tensor is ", self.scalar_type());
  return copy_(self, accumulate<kernel>(self, dim, self.scalar_type()), false);
}

template <bool largest>
static std::tuple<Tensor, Tensor> cumulative_extreme(const Tensor& self, int64_t dim) {
  const char* op = largest ? "cummax" : "cummin";
  dim = wrap_dim(dim, self.dim(), op);
  check_ordered(op, self);
  const Tensor values = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  const Tensor indices = detail::empty_contiguous(self.sizes(), kInt64, self.device());
  kernels::cumulative_extreme(self.device().type, values, indices, contiguous(self), AlongDim(self.sizes(), dim),
                              largest);
  return {values, indices};
}

static Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim(), "logcumsumexp");
  RUSH_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex(),
                             "logcumsumexp: expected a floating or complex tensor, got ", self.scalar_type());
  const Tensor output = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  kernels::logcumsumexp(self.device().type, output, contiguous(self), AlongDim(self.sizes(), dim));
  return output;
}

// `self` with what is to stand before and behind it.
static Tensor joined(const Tensor& self, int64_t dim, const std::optional<Tensor>& prepend,
                     const std::optional<Tensor>& append) {
  std::vector<Tensor> parts;
  if (given(prepend)) parts.push_back(*prepend);
  parts.push_back(self);
  if (given(append)) parts.push_back(*append);
  return parts.size() == 1 ? self : ops::cat(parts, dim);
}

static Tensor diff(const Tensor& self, int64_t n, int64_t dim, const std::optional<Tensor>& prepend,
                   const std::optional<Tensor>& append) {
  RUSH_CHECK_VALUE(self.dim() > 0, "diff: a 0-dimensional tensor has no neighbours");
  RUSH_CHECK_VALUE(n >= 0, "diff: the order is negative: ", n);
  dim = wrap_dim(dim, self.dim(), "diff");
  if (n == 0) return ops::clone(self, std::nullopt);
  Tensor result = joined(self, dim, prepend, append);
  for (int64_t order = std::min(n, result.size(dim)); order > 0; --order) {
    const int64_t left = result.size(dim) - 1;
    const Tensor next = result.narrow(dim, 1, left), previous = result.narrow(dim, 0, left);
    result = result.scalar_type() == kBool ? next.logical_xor(previous) : next - previous;
  }
  return result;
}

}  // namespace native

void register_scan_ops(Registry& r) {
  r.native(ops::cumsum, native::accumulate<kernels::cumsum>);
  r.native(ops::cumsum_, native::accumulate_<kernels::cumsum>);
  r.native(ops::cumprod, native::accumulate<kernels::cumprod>);
  r.native(ops::cumprod_, native::accumulate_<kernels::cumprod>);
  r.native(ops::cummax, native::cumulative_extreme<true>);
  r.native(ops::cummin, native::cumulative_extreme<false>);
  r.native(ops::logcumsumexp, native::logcumsumexp);
  r.composite(ops::diff, native::diff);
}

Tensor Tensor::cumsum(int64_t dim, std::optional<ScalarType> dtype) const { return ops::cumsum(*this, dim, dtype); }
Tensor& Tensor::cumsum_(int64_t dim, std::optional<ScalarType> dtype) const { return ops::cumsum_(self(), dim, dtype); }
Tensor Tensor::cumprod(int64_t dim, std::optional<ScalarType> dtype) const { return ops::cumprod(*this, dim, dtype); }
Tensor& Tensor::cumprod_(int64_t dim, std::optional<ScalarType> dtype) const {
  return ops::cumprod_(self(), dim, dtype);
}
std::tuple<Tensor, Tensor> Tensor::cummax(int64_t dim) const { return ops::cummax(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::cummin(int64_t dim) const { return ops::cummin(*this, dim); }
Tensor Tensor::logcumsumexp(int64_t dim) const { return ops::logcumsumexp(*this, dim); }
Tensor Tensor::diff(int64_t n, int64_t dim, const std::optional<Tensor>& prepend,
                    const std::optional<Tensor>& append) const {
  return ops::diff(*this, n, dim, prepend, append);
}

}  // namespace rush
