#include "core/ops/factory/range.h"

#include <cmath>

#include "core/ops/register.h"

namespace rush {

namespace native {

static Tensor row(int64_t size, ScalarType dtype, MaybeDevice device) {
  return detail::empty_contiguous(size, dtype, device.value_or(get_default_device()));
}

// ---- arange ----

static int64_t as_integer(const Scalar& number) {
  const double value = number.toDouble();
  RUSH_CHECK_VALUE(!number.is_floating_point() || (value >= -0x1p63 && value < 0x1p63), "arange: ", value,
                   " does not fit an int64");
  return number.toLong();
}

// ceil((end - start) / step). For int64 in integers, whose ends may lie beyond what a double can tell apart.
static int64_t arange_size(const Scalar& start, const Scalar& end, const Scalar& step, ScalarType dtype) {
  RUSH_CHECK_VALUE(!start.is_complex() && !end.is_complex() && !step.is_complex(),
                   "arange: complex numbers have no order");
  const double first = start.toDouble(), last = end.toDouble(), by = step.toDouble();
  RUSH_CHECK_VALUE(std::isfinite(first) && std::isfinite(last), "arange: cannot count from ", first, " to ", last);
  RUSH_CHECK_VALUE(by > 0 || by < 0, "arange: the step must not be zero, got ", by);
  RUSH_CHECK_VALUE(by > 0 ? last >= first : last <= first, "arange: a step of ", by, " leads from ", first,
                   " away from ", last);
  if (dtype == kInt64) {
    const int64_t from = as_integer(start), to = as_integer(end), stride = as_integer(step);
    RUSH_CHECK_VALUE(stride != 0, "arange: the step ", by, " is zero as an integer");
    const uint64_t distance = stride > 0 ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                         : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
    const uint64_t length = stride > 0 ? static_cast<uint64_t>(stride) : -static_cast<uint64_t>(stride);
    const uint64_t count = distance / length + (distance % length != 0);
    RUSH_CHECK_VALUE(count <= INT64_MAX, "arange: ", count, " elements are too many");
    return static_cast<int64_t>(count);
  }
  const double count = std::ceil((last - first) / by);
  RUSH_CHECK_VALUE(count >= 0 && count < 9.2e18, "arange: ", count, " elements are too many");
  return static_cast<int64_t>(count);
}

static Tensor arange_start_step(const Scalar& start, const Scalar& end, const Scalar& step, MaybeDtype dtype,
                                MaybeLayout /*layout*/, MaybeDevice device, MaybePin /*pin_memory*/) {
  const bool integral = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  const ScalarType type = dtype.value_or(integral ? kInt64 : get_default_dtype());
  const Tensor out = row(arange_size(start, end, step, type), type, device);
  kernels::arange(out.device().type, out, start, step);
  return out;
}

static Tensor arange_start(const Scalar& start, const Scalar& end, MaybeDtype dtype, MaybeLayout layout,
                           MaybeDevice device, MaybePin pin_memory) {
  return arange_start_step(start, end, 1, dtype, layout, device, pin_memory);
}

static Tensor arange(const Scalar& end, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin_memory) {
  return arange_start_step(0, end, 1, dtype, layout, device, pin_memory);
}

// ---- linspace and logspace ----

static ScalarType space_dtype(const char* op, const Scalar& start, const Scalar& end, MaybeDtype dtype) {
  const bool complex = start.is_complex() || end.is_complex();
  if (!dtype) return complex ? to_complex(get_default_dtype()) : get_default_dtype();
  RUSH_CHECK_TYPE(!complex || is_complex(*dtype), op, ": complex ends do not fit ", *dtype);
  return *dtype;
}

static Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, MaybeDtype dtype, MaybeLayout /*layout*/,
                       MaybeDevice device, MaybePin /*pin_memory*/) {
  RUSH_CHECK_VALUE(steps >= 0, "linspace: number of steps must be non-negative, got ", steps);
  const Tensor out = row(steps, space_dtype("linspace", start, end, dtype), device);
  kernels::linspace(out.device().type, out, start, end);
  return out;
}

static Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, MaybeDtype dtype,
                       MaybeLayout /*layout*/, MaybeDevice device, MaybePin /*pin_memory*/) {
  RUSH_CHECK_VALUE(steps >= 0, "logspace: number of steps must be non-negative, got ", steps);
  const Tensor out = row(steps, space_dtype("logspace", start, end, dtype), device);
  kernels::logspace(out.device().type, out, start, end, base);
  return out;
}

// An end given as a tensor: its value.
static const Scalar& value_of(const Scalar& number, const char*) { return number; }
static Scalar value_of(const Tensor& number, const char* op) {
  RUSH_CHECK_VALUE(number.dim() == 0, op, ": start and end must be 0-dimensional, got sizes ", number.sizes());
  return number.item();
}

// Without a device of its own the result is on that of a tensor among the ends.
static MaybeDevice device_of(MaybeDevice device, const Scalar&) { return device; }
static MaybeDevice device_of(MaybeDevice device, const Tensor& t) { return device ? device : t.device(); }

template <class Start, class End>
static Tensor linspace_of(const Start& start, const End& end, int64_t steps, MaybeDtype dtype, MaybeLayout layout,
                          MaybeDevice device, MaybePin pin_memory) {
  return native::linspace(value_of(start, "linspace"), value_of(end, "linspace"), steps, dtype, layout,
                          device_of(device_of(device, start), end), pin_memory);
}

template <class Start, class End>
static Tensor logspace_of(const Start& start, const End& end, int64_t steps, double base, MaybeDtype dtype,
                          MaybeLayout layout, MaybeDevice device, MaybePin pin_memory) {
  return native::logspace(value_of(start, "logspace"), value_of(end, "logspace"), steps, base, dtype, layout,
                          device_of(device_of(device, start), end), pin_memory);
}

// ---- eye ----

static Tensor eye_m(int64_t n, int64_t m, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                    MaybePin pin_memory) {
  RUSH_CHECK_VALUE(n >= 0 && m >= 0, "eye: sizes must be non-negative, got (", n, ", ", m, ")");
  const Tensor out = ops::zeros({n, m}, dtype, layout, device, pin_memory);
  const Tensor diagonal = detail::make_alias(out);
  diagonal.impl()->set_geometry(std::min(n, m), std::min(n, m) > 1 ? m + 1 : 1, 0);
  diagonal.fill_(1);
  return out;
}

static Tensor eye(int64_t n, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device, MaybePin pin_memory) {
  return native::eye_m(n, n, dtype, layout, device, pin_memory);
}

}  // namespace native

void register_range_ops(Registry& r) {
  r.native(ops::arange, native::arange);
  r.native(ops::arange_start, native::arange_start);
  r.native(ops::arange_start_step, native::arange_start_step);
  r.native(ops::linspace, native::linspace);
  r.native(ops::linspace_Tensor_Tensor, native::linspace_of<Tensor, Tensor>);
  r.native(ops::linspace_Tensor_Scalar, native::linspace_of<Tensor, Scalar>);
  r.native(ops::linspace_Scalar_Tensor, native::linspace_of<Scalar, Tensor>);
  r.native(ops::logspace, native::logspace);
  r.native(ops::logspace_Tensor_Tensor, native::logspace_of<Tensor, Tensor>);
  r.native(ops::logspace_Tensor_Scalar, native::logspace_of<Tensor, Scalar>);
  r.native(ops::logspace_Scalar_Tensor, native::logspace_of<Scalar, Tensor>);
  r.native(ops::eye, native::eye);
  r.native(ops::eye_m, native::eye_m);
}

using detail::call_factory;

Tensor arange(const Scalar& end, const TensorOptions& o) { return call_factory(ops::arange, o, end); }
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& o) {
  return call_factory(ops::arange_start, o, start, end);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& o) {
  return call_factory(ops::arange_start_step, o, start, end, step);
}
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& o) {
  return call_factory(ops::linspace, o, start, end, steps);
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, const TensorOptions& o) {
  return call_factory(ops::logspace, o, start, end, steps, base);
}
Tensor eye(int64_t n, const TensorOptions& o) { return call_factory(ops::eye, o, n); }
Tensor eye(int64_t n, int64_t m, const TensorOptions& o) { return call_factory(ops::eye_m, o, n, m); }

}  // namespace rush
