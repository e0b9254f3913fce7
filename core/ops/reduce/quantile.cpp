// quantile and nanquantile: sorting, then reading at fractional ranks.

#include "core/ops/basic.h"
#include "core/ops/factory/factories.h"
#include "core/ops/reduce/order_statistics.h"
#include "core/ops/reduce/sort.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

enum class Interpolation { Linear, Lower, Higher, Midpoint, Nearest };

Interpolation interpolation_of(const char* op, std::string_view text) {
  if (text == "linear") return Interpolation::Linear;
  if (text == "lower") return Interpolation::Lower;
  if (text == "higher") return Interpolation::Higher;
  if (text == "midpoint") return Interpolation::Midpoint;
  RUSH_CHECK_VALUE(text == "nearest", op, ": interpolation is \"", text,
                   "\", expected linear, lower, higher, midpoint or nearest");
  return Interpolation::Nearest;
}

void check_quantile(const char* op, const Tensor& self, const Tensor& q) {
  RUSH_CHECK_VALUE(self.numel() > 0, op, ": the tensor of shape ", self.sizes(), " has no elements");
  RUSH_CHECK_TYPE(self.scalar_type() == kFloat32 || self.scalar_type() == kFloat64, op,
                  ": expected a float32 or float64 tensor, got ", self.scalar_type());
  RUSH_CHECK_VALUE(q.dim() <= 1, op, ": q has at most one dimension, got shape ", q.sizes());
  RUSH_CHECK_TYPE(q.scalar_type() == self.scalar_type(), op, ": q is ", q.scalar_type(), ", the tensor ",
                  self.scalar_type());
  if (q.numel() == 0 || q.is_meta()) return;
  RUSH_CHECK_VALUE(q.ge(0).logical_and(q.le(1)).all().item<bool>(), op, ": q must lie in [0, 1]");
}

// The ranks that are read in each line of `sorted` (..., n): q (n - 1), (..., m). n counts all elements of the line, or
// what is not NaN. Where a NaN must show, the last rank is read, which holds it.
Tensor ranks_of(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  const int64_t last = sorted.size(-1) - 1;
  const Tensor nan = sorted.isnan();
  if (ignore_nan) {
    const Tensor known = nan.logical_not().sum(-1, true);
    return (q * (known - 1).to(q.scalar_type())).clamp_min(0);
  }
  DimVector shape(sorted.sizes());
  shape[shape.size() - 1] = q.numel();
  return (q * last).expand(shape).masked_fill(nan.any(-1, true), last);
}

Tensor read_at(const Tensor& sorted, const Tensor& ranks, Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::Lower: return sorted.gather(-1, ranks.floor().to(kInt64));
    case Interpolation::Higher: return sorted.gather(-1, ranks.ceil().to(kInt64));
    case Interpolation::Nearest: return sorted.gather(-1, ranks.round().to(kInt64));
    default: break;
  }
  const Tensor below = ranks.floor().to(kInt64);
  const Tensor low = sorted.gather(-1, below), high = sorted.gather(-1, ranks.ceil().to(kInt64));
  if (interpolation == Interpolation::Midpoint) return rush::lerp(low, high, full_like(low, 0.5));
  return rush::lerp(low, high, ranks - below.to(ranks.scalar_type()));
}

}  // namespace

template <bool ignore_nan>
static Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view how) {
  const char* op = ignore_nan ? "nanquantile" : "quantile";
  const Interpolation interpolation = interpolation_of(op, how);
  check_quantile(op, self, q);
  const Tensor lines = !dim || self.dim() == 0 ? self.flatten() : self.movedim(wrap_dim(*dim, self.dim(), op), -1);
  if (dim) wrap_dim(*dim, self.dim(), op);
  const Tensor sorted = std::get<0>(ops::sort(lines, -1, false));                               // (..., n)
  Tensor result = read_at(sorted, ranks_of(sorted, q.reshape(-1), ignore_nan), interpolation);  // (..., m)
  // The reduced dimension goes back to its place with size one, and the one of q to the front.
  if (keepdim && self.dim() > 0) {
    DimVector ones(self.sizes().size(), 1);
    ones.push_back(q.numel());
    result = dim ? result.unsqueeze(wrap_dim(*dim, self.dim(), op)) : result.reshape(ones);
  }
  return q.dim() == 0 ? result.squeeze(-1) : result.movedim(-1, 0);
}

template <bool ignore_nan>
static Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                              std::string_view how) {
  RUSH_CHECK_VALUE(q >= 0 && q <= 1, ignore_nan ? "nanquantile" : "quantile", ": q must lie in [0, 1], got ", q);
  return quantile<ignore_nan>(self, full({}, q, self.options()), dim, keepdim, how);
}

}  // namespace native

void register_quantile_ops(Registry& r) {
  r.composite(ops::quantile, native::quantile<false>);
  r.composite(ops::quantile_scalar, native::quantile_scalar<false>);
  r.composite(ops::nanquantile, native::quantile<true>);
  r.composite(ops::nanquantile_scalar, native::quantile_scalar<true>);
}

Tensor Tensor::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                        std::string_view interpolation) const {
  return ops::quantile(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::quantile(double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const {
  return ops::quantile_scalar(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                           std::string_view interpolation) const {
  return ops::nanquantile(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::nanquantile(double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const {
  return ops::nanquantile_scalar(*this, q, dim, keepdim, interpolation);
}

}  // namespace rush
