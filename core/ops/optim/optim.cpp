#include "core/ops/optim/optim.h"

#include <utility>

#include "core/dispatch/registry.h"
#include "core/ops/register.h"

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

namespace {

template <class Step, size_t... number, size_t... flag>
Step step_from(ArrayRef<double> options, std::index_sequence<number...>, std::index_sequence<flag...>) {
  return {options[number]..., (options[Step::kNumbers + flag] != 0)...};
}

// Throws ValueError unless what a capturable step reads there lies on the parameters' device, numbers too.
void check_on_device(const char* op, TensorList params, std::initializer_list<TensorList> lists) {
  for (const TensorList& list : lists) {
    for (const Tensor& t : list) {
      RUSH_CHECK_VALUE(t.defined() && t.device() == params[0].device(), op, ": a number is not on ",
                       params[0].device());
    }
  }
}

// The lists of a step, of which a kernel takes as many states as it has.
struct Lists {
  TensorList params, grads, states0, states1, states2;

  template <class Kernel, class... Rest>
  static constexpr bool takes = std::is_invocable_v<const Kernel&, DeviceType, TensorList, TensorList, const Rest&...>;

  // Calls the kernel if its arguments after the lists are the rest, and says whether they were.
  template <class Kernel, class... Rest>
  bool run(const Kernel& kernel, const Rest&... rest) const {
    const DeviceType device = params[0].device().type;
    if constexpr (takes<Kernel, TensorList, TensorList, TensorList, Rest...>) {
      return kernel(device, params, grads, states0, states1, states2, rest...), true;
    } else if constexpr (takes<Kernel, TensorList, TensorList, Rest...>) {
      return kernel(device, params, grads, states0, states1, rest...), true;
    } else if constexpr (takes<Kernel, TensorList, Rest...>) {
      return kernel(device, params, grads, states0, rest...), true;
    } else {
      return false;
    }
  }
};

template <class Step, auto& fused, auto& capturable>
void take_step(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
               ArrayRef<int64_t> steps, ArrayRef<double> mu_products, ArrayRef<double> options,
               TensorList step_counters, TensorList mu_product_counters, const std::optional<Tensor>& numbers,
               const std::optional<Tensor>& found_inf, const std::optional<Tensor>& functors) {
  RUSH_CHECK_VALUE(options.size() == Step::kNumbers + Step::kFlags, fused.name(), ": expected ",
                   Step::kNumbers + Step::kFlags, " options, got ", options.size());
  if (params.empty()) return;
  const Step step =
      step_from<Step>(options, std::make_index_sequence<Step::kNumbers>(), std::make_index_sequence<Step::kFlags>());
  const Lists lists{params, grads, states0, states1, states2};
  if (!given(numbers)) {
    lists.run(fused, step) || lists.run(fused, steps, step) || lists.run(fused, steps, mu_products, step);
    return;
  }
  const Tensor found = found_inf.value_or(Tensor());
  const TensorList found_list(&found, found.defined() ? 1 : 0);
  check_on_device(fused.name(), params, {step_counters, mu_product_counters, {&*numbers, 1}, found_list});
  RUSH_CHECK_VALUE(
      given(functors) &&
          static_cast<int64_t>(functors->nbytes()) >= static_cast<int64_t>(params.size()) * kFunctorBytes &&
          numbers->numel() >= static_cast<int64_t>(Step::kNumbers),
      fused.name(), ": a capturable step needs ", Step::kNumbers, " numbers and ", kFunctorBytes,
      " bytes for each parameter's functor");
  lists.run(capturable, DeviceStep{step_counters, mu_product_counters, *numbers, found, *functors}, step);
}

}  // namespace

}  // namespace rush::native

namespace rush {

void register_step_ops(Registry& r) {
  using namespace native;
  r.native(ops::sgd_step_, take_step<SgdStep, kernels::fused_sgd, kernels::capturable_sgd>);
  r.native(ops::adam_step_, take_step<AdamStep, kernels::fused_adam, kernels::capturable_adam>);
  r.native(ops::adadelta_step_, take_step<AdadeltaStep, kernels::fused_adadelta, kernels::capturable_adadelta>);
  r.native(ops::rmsprop_step_, take_step<RmsPropStep, kernels::fused_rmsprop, kernels::capturable_rmsprop>);
  r.native(ops::adagrad_step_, take_step<AdagradStep, kernels::fused_adagrad, kernels::capturable_adagrad>);
  r.native(ops::nadam_step_, take_step<NAdamStep, kernels::fused_nadam, kernels::capturable_nadam>);
  r.native(ops::radam_step_, take_step<RAdamStep, kernels::fused_radam, kernels::capturable_radam>);
}

}  // namespace rush
