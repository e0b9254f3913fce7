#include "core/ops/optim/optim.h"

namespace rush::native {

namespace {

void check_pair(const char* op, size_t i, const Tensor& param, const Tensor& other) {
  RUSH_CHECK_VALUE(other.defined(), op, ": a tensor that goes with parameter ", i, " is undefined");
  RUSH_CHECK_VALUE(other.sizes() == param.sizes(), op, ": parameter ", i, " has shape ", param.sizes(),
                   ", a tensor that goes with it ", other.sizes());
  RUSH_CHECK_TYPE(other.scalar_type() == param.scalar_type(), op, ": parameter ", i, " is of ", param.scalar_type(),
                  ", a tensor that goes with it of ", other.scalar_type());
  RUSH_CHECK_VALUE(other.device() == param.device(), op, ": parameter ", i, " is on ", param.device(),
                   ", a tensor that goes with it on ", other.device());
  RUSH_CHECK_VALUE(other.strides() == param.strides(), op, ": parameter ", i, " has strides ", param.strides(),
                   ", a tensor that goes with it ", other.strides());
}

}  // namespace

void check_step_lists(const char* op, TensorList params, std::initializer_list<TensorList> others) {
  for (const TensorList& list : others) {
    RUSH_CHECK_VALUE(list.size() == params.size(), op, ": got lists of ", params.size(), " and ", list.size(),
                     " tensors");
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    RUSH_CHECK_VALUE(param.defined(), op, ": parameter ", i, " is undefined");
    RUSH_CHECK_VALUE(param.is_non_overlapping_and_dense(), op, ": parameter ", i, " of sizes ", param.sizes(),
                     " and strides ", param.strides(), " is not dense");
    RUSH_CHECK_TYPE(param.scalar_type() == params[0].scalar_type(), op, ": parameters are of ", params[0].scalar_type(),
                    " and ", param.scalar_type());
    RUSH_CHECK_VALUE(param.device() == params[0].device(), op, ": parameters are on ", params[0].device(), " and ",
                     param.device());
    for (const TensorList& list : others) check_pair(op, i, param, list[i]);
  }
}

void check_step_numbers(const char* op, TensorList params, size_t count) {
  RUSH_CHECK_VALUE(count == params.size(), op, ": got ", count, " numbers for ", params.size(), " parameters");
}

void check_device_step(const char* op, TensorList params, const DeviceStep& on_device, size_t count) {
  const TensorList found_inf(&on_device.found_inf, on_device.found_inf.defined() ? 1 : 0);
  const TensorList numbers(&on_device.numbers, 1), functors(&on_device.functors, 1);
  for (const TensorList& list : {on_device.steps, on_device.mu_products, numbers, found_inf, functors}) {
    for (const Tensor& t : list) {
      RUSH_CHECK_VALUE(t.defined() && t.device() == params[0].device(), op, ": a number is not on ",
                       params[0].device());
    }
  }
  const auto bytes = static_cast<int64_t>(params.size()) * kFunctorBytes;
  RUSH_CHECK_VALUE(static_cast<int64_t>(on_device.functors.nbytes()) >= bytes &&
                       on_device.numbers.numel() >= static_cast<int64_t>(count),
                   op, ": a capturable step needs ", count, " numbers and ", kFunctorBytes,
                   " bytes for each parameter's functor");
}

}  // namespace rush::native
