#include "core/ops/optim/amp.h"

#include <algorithm>
#include <vector>

#include "core/ops/basic.h"
#include "core/ops/pointwise/cast_all.h"
#include "core/ops/register.h"
#include "core/ops/write_back.h"

namespace rush {

namespace native {

static void check_single(const char* op, const char* name, const Tensor& t, ScalarType dtype, Device device) {
  RUSH_CHECK_VALUE(
      t.defined() && t.layout() == kStrided && t.numel() == 1 && t.scalar_type() == dtype && t.device() == device, op,
      ": expected ", name, " to be one ", dtype, " on ", device, ", got ",
      t.defined() ? str(t.scalar_type(), " of shape ", t.sizes(), " on ", t.device()) : "none");
}

static void non_finite_check_and_unscale_(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  const char* op = "_amp_foreach_non_finite_check_and_unscale_";
  if (grads.empty()) return;
  RUSH_CHECK_VALUE(grads[0].defined(), op, ": a gradient is undefined");
  const ScalarType dtype = grads[0].scalar_type();
  const Device device = grads[0].device();
  RUSH_CHECK_TYPE(is_floating_point(dtype), op, ": expected gradients in floating point, got ", dtype);
  check_single(op, "found_inf", found_inf, kFloat32, device);
  check_single(op, "inv_scale", inv_scale, kFloat32, device);
  for (const Tensor& grad : grads) {
    RUSH_CHECK_VALUE(grad.defined(), op, ": a gradient is undefined");
    RUSH_CHECK_TYPE(grad.scalar_type() == dtype, op, ": gradients are of ", dtype, " and ", grad.scalar_type());
    RUSH_CHECK_VALUE(grad.device() == device, op, ": gradients are on ", device, " and ", grad.device());
    RUSH_CHECK_VALUE(!may_overlap(grad.sizes(), grad.strides()), op,
                     ": several elements of a gradient share memory; clone it first");
  }
  // Dense gradients, the usual case, need no memory here, so that a scaler with several lists is not left half done.
  const bool all_dense =
      std::all_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.is_non_overlapping_and_dense(); });
  if (all_dense) {
    kernels::unscale(device.type, grads, found_inf, inv_scale);
  } else {
    WriteBack copies;
    std::vector<Tensor> dense;
    for (const Tensor& grad : grads) dense.push_back(copies.dense(grad));
    kernels::unscale(device.type, dense, found_inf, inv_scale);
    copies.run();
  }
  for (const Tensor& grad : grads) {
    if (grad.is_non_overlapping_and_dense()) grad.bump_version();  // the others' copies counted when they went back
  }
  found_inf.bump_version();
}

static Tensor& update_scale_(Tensor& scale, Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                             double backoff_factor, int64_t growth_interval) {
  const char* op = "_amp_update_scale_";
  RUSH_CHECK_VALUE(scale.defined(), op, ": expected scale to be one float32, got none");
  check_single(op, "scale", scale, kFloat32, scale.device());
  check_single(op, "growth_tracker", growth_tracker, kInt32, scale.device());
  check_single(op, "found_inf", found_inf, kFloat32, scale.device());
  kernels::update_scale(scale.device().type, scale, growth_tracker, found_inf,
                        {growth_factor, backoff_factor, growth_interval});
  return scale;
}

// `tensor`, or a copy of it that has the strides of `other`.
static Tensor laid_out_as(const Tensor& other, const Tensor& tensor) {
  if (tensor.strides() == other.strides()) return tensor;
  Tensor copy = detail::empty_strided(tensor.sizes(), other.strides(), tensor.scalar_type(), tensor.device());
  return copy_(copy, tensor, false);
}

static std::vector<Tensor> cast_all(TensorList tensors, ScalarType dtype) {
  const char* op = "cast_all";
  RUSH_CHECK_TYPE(is_floating_point(dtype), op, ": expected a floating dtype, got ", dtype);
  for (const Tensor& t : tensors) {
    RUSH_CHECK_VALUE(t.defined(), op, ": a tensor is undefined");
    RUSH_CHECK_TYPE(t.is_floating_point(), op, ": expected tensors in floating point, got ", t.scalar_type());
    RUSH_CHECK_VALUE(t.device() == tensors[0].device(), op, ": tensors are on ", tensors[0].device(), " and ",
                     t.device());
  }
  std::vector<Tensor> casts;
  std::vector<ScalarType> dtypes;  // that the tensors have
  for (const Tensor& t : tensors) {
    casts.push_back(empty_like(t, t.options().dtype(dtype)));
    if (std::find(dtypes.begin(), dtypes.end(), t.scalar_type()) == dtypes.end()) dtypes.push_back(t.scalar_type());
  }
  for (const ScalarType from_dtype : dtypes) {
    std::vector<Tensor> to, from;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].scalar_type() != from_dtype) continue;
      to.push_back(casts[i]);
      from.push_back(laid_out_as(casts[i], tensors[i]));
    }
    kernels::cast_many(to[0].device().type, to, from);
  }
  return casts;
}

}  // namespace native

void register_amp_ops(Registry& r) {
  r.native(ops::_amp_foreach_non_finite_check_and_unscale_, native::non_finite_check_and_unscale_);
  r.native(ops::_amp_update_scale_, native::update_scale_);
  r.native(ops::cast_all, native::cast_all);
}

}  // namespace rush
