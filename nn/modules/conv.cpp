#include "nn/modules/conv.h"

#include <algorithm>

#include "core/ops/factory/factories.h"
#include "nn/functional/conv.h"
#include "nn/functional/pad.h"
#include "nn/module_text.h"
#include "nn/modules/default_init.h"

namespace rush::nn {

using enumtype::holds;

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& options) : options(options) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  const auto& o = options;
  RUSH_CHECK_VALUE(o.groups() > 0 && o.in_channels() % o.groups() == 0 && o.out_channels() % o.groups() == 0, "Conv", D,
                   "d: ", o.in_channels(), " input and ", o.out_channels(), " output channels cannot be divided into ",
                   o.groups(), " groups");
  const bool strided = std::any_of(o.stride().begin(), o.stride().end(), [](int64_t s) { return s != 1; });
  RUSH_CHECK_VALUE(!strided || !holds<enumtype::kSame>(o.padding()), "Conv", D,
                   "d: padding=kSame keeps the sizes only with stride 1, got ", o.stride().ref());
  std::vector<int64_t> sizes = {o.out_channels(), o.in_channels() / o.groups()};
  sizes.insert(sizes.end(), o.kernel_size().begin(), o.kernel_size().end());
  weight = this->register_parameter("weight", rush::empty(sizes));
  bias = this->register_parameter("bias", o.bias() ? empty(o.out_channels()) : Tensor(), o.bias());
  reset_parameters();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  detail::reset_weight_and_bias(weight, bias);
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  const auto& o = options;
  const auto all = [](const ExpandingArray<D>& values, int64_t value) { return values == ExpandingArray<D>(value); };
  detail::ModuleText text = detail::module_text("Conv", D, "d(", o.in_channels(), ", ", o.out_channels(),
                                                ", kernel_size=", o.kernel_size(), ", stride=", o.stride());
  if (const auto* padding = std::get_if<ExpandingArray<D>>(&o.padding())) {
    if (!all(*padding, 0)) text += detail::options_text(", padding=", *padding);
  } else {
    text += detail::options_text(", padding=", holds<enumtype::kSame>(o.padding()) ? "'same'" : "'valid'");
  }
  if (!all(o.dilation(), 1)) text += detail::options_text(", dilation=", o.dilation());
  if (o.groups() != 1) text += detail::options_text(", groups=", o.groups());
  if (!o.bias()) text += detail::options_text(", bias=", false);
  if (!holds<enumtype::kZeros>(o.padding_mode())) {
    text += ", padding_mode=" + enumtype::get_enum_name(o.padding_mode());
  }
  stream << text << ")";
}

template <size_t D, class Derived>
std::vector<int64_t> ConvNdImpl<D, Derived>::padding_both_sides() const {
  std::vector<int64_t> sides;
  for (size_t d = D; d-- > 0;) {
    int64_t before = 0, after = 0;
    if (const auto* padding = std::get_if<ExpandingArray<D>>(&options.padding())) {
      before = after = (*padding)[d];
    } else if (holds<enumtype::kSame>(options.padding())) {
      const int64_t total = options.dilation()[d] * (options.kernel_size()[d] - 1);
      before = total / 2;
      after = total - before;
    }
    sides.push_back(before);
    sides.push_back(after);
  }
  return sides;
}

static functional::PadFuncOptions::mode_t pad_mode(const detail::conv_padding_mode_t& mode) {
  if (holds<enumtype::kReflect>(mode)) return kReflect;
  if (holds<enumtype::kReplicate>(mode)) return kReplicate;
  return kCircular;
}

template <size_t D, class Derived>
Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  auto call = functional::ConvFuncOptions<D>()
                  .bias(bias)
                  .stride(options.stride())
                  .padding(options.padding())
                  .dilation(options.dilation())
                  .groups(options.groups());
  Tensor padded = input;
  if (!holds<enumtype::kZeros>(options.padding_mode())) {
    padded =
        functional::pad(input, functional::PadFuncOptions(padding_both_sides()).mode(pad_mode(options.padding_mode())));
    call.padding(0);
  }
  if constexpr (D == 1) return functional::conv1d(padded, weight, call);
  if constexpr (D == 2) return functional::conv2d(padded, weight, call);
  if constexpr (D == 3) return functional::conv3d(padded, weight, call);
}

template class ConvNdImpl<1, Conv1dImpl>;
template class ConvNdImpl<2, Conv2dImpl>;
template class ConvNdImpl<3, Conv3dImpl>;

}  // namespace rush::nn
