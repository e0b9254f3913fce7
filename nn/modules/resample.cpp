#include "nn/modules/resample.h"

#include "nn/functional/fold.h"
#include "nn/functional/pad.h"
#include "nn/functional/upsampling.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace {

// What stands between the brackets when a module is printed.
detail::ModuleText describe(const UnfoldOptions& o) {
  return detail::options_text("kernel_size=", o.kernel_size(), ", dilation=", o.dilation(), ", padding=", o.padding(),
                              ", stride=", o.stride());
}
detail::ModuleText describe(const FoldOptions& o) {
  const UnfoldOptions windows =
      UnfoldOptions(o.kernel_size()).dilation(o.dilation()).padding(o.padding()).stride(o.stride());
  return detail::options_text("output_size=", o.output_size(), ", ", describe(windows));
}
detail::ModuleText describe(const PixelShuffleOptions& o) {
  return detail::options_text("upscale_factor=", o.upscale_factor());
}
detail::ModuleText describe(const PixelUnshuffleOptions& o) {
  return detail::options_text("downscale_factor=", o.downscale_factor());
}
detail::ModuleText describe(const ChannelShuffleOptions& o) { return detail::options_text("groups=", o.groups()); }
template <size_t D>
detail::ModuleText describe(const PaddingOptions<D>& o) {
  return detail::options_text("padding=", o.padding());
}
template <size_t D>
detail::ModuleText describe(const ConstantPadOptions<D>& o) {
  return detail::options_text("padding=", o.padding(), ", value=", o.value());
}

// Throws ValueError unless the input has D spatial dimensions, the channels and perhaps the batch.
template <class Options>
Tensor pad(const char* name, const Tensor& input, const Options& o, functional::PadFuncOptions::mode_t mode) {
  const auto dims = static_cast<int64_t>(o.padding().size() / 2);
  double value = 0;
  if constexpr (requires { o.value(); }) {
    value = o.value();
  }
  const bool constant = enumtype::holds<enumtype::kConstant>(mode);
  RUSH_CHECK_VALUE(constant || input.dim() == dims + 1 || input.dim() == dims + 2, name, ": expected ", dims + 1,
                   " or ", dims + 2, " dimensions, got shape ", input.sizes());
  return functional::pad(input, functional::PadFuncOptions(o.padding().ref().vec()).mode(mode).value(value));
}

}  // namespace

RUSH_FORALL_PADDINGS(RUSH_PRINT_OPTIONS)
RUSH_FORALL_RESAMPLERS(RUSH_OPTIONS_MODULE_BODY)

#define RUSH_PAD_FORWARD(Name, mode)                \
  Tensor Name##Impl::forward(const Tensor& input) { \
    const ModuleScope scope(*this);                 \
    return pad(#Name, input, options, mode);        \
  }
#define RUSH_PADS_FORWARD(D)                         \
  RUSH_PAD_FORWARD(ReflectionPad##D##d, kReflect)    \
  RUSH_PAD_FORWARD(ReplicationPad##D##d, kReplicate) \
  RUSH_PAD_FORWARD(CircularPad##D##d, kCircular)     \
  RUSH_PAD_FORWARD(ZeroPad##D##d, kConstant)         \
  RUSH_PAD_FORWARD(ConstantPad##D##d, kConstant)
RUSH_PADS_FORWARD(1)
RUSH_PADS_FORWARD(2)
RUSH_PADS_FORWARD(3)

Tensor UpsampleImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const auto mode =
      std::visit([](auto each) { return functional::InterpolateFuncOptions::mode_t(each); }, options.mode());
  return functional::interpolate(input, functional::InterpolateFuncOptions()
                                            .size(options.size())
                                            .scale_factor(options.scale_factor())
                                            .mode(mode)
                                            .align_corners(options.align_corners()));
}

// Where an upsampling module goes, as it is printed.
template <class Options>
static detail::ModuleText target(const Options& o) {
  return o.scale_factor() ? detail::options_text("scale_factor=", *o.scale_factor())
                          : detail::options_text("size=", o.size());
}

void UpsampleImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("Upsample(", target(options), ", mode=", enumtype::get_enum_name(options.mode()), ")");
}

Tensor UpsamplingNearest2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const auto to = functional::InterpolateFuncOptions().size(options.size()).scale_factor(options.scale_factor());
  return functional::interpolate(input, to);
}
void UpsamplingNearest2dImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("UpsamplingNearest2d(", target(options), ", mode=kNearest)");
}

Tensor UpsamplingBilinear2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  auto to = functional::InterpolateFuncOptions().size(options.size()).scale_factor(options.scale_factor());
  return functional::interpolate(input, to.mode(kBilinear).align_corners(true));
}
void UpsamplingBilinear2dImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("UpsamplingBilinear2d(", target(options), ", mode=kBilinear)");
}

}  // namespace rush::nn
