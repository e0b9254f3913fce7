#include "nn/modules/conv_transpose.h"

#include "core/ops/factory/factories.h"
#include "core/print/bracketed.h"
#include "nn/functional/conv.h"
#include "nn/module_text.h"
#include "nn/modules/default_init.h"

namespace rush::nn {

template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& options) : options(options) {
  ConvTransposeNdImpl::reset();
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset() {
  const auto& o = options;
  RUSH_CHECK_VALUE(o.groups() > 0 && o.in_channels() % o.groups() == 0 && o.out_channels() % o.groups() == 0,
                   "ConvTranspose", D, "d: ", o.in_channels(), " input and ", o.out_channels(),
                   " output channels cannot be divided into ", o.groups(), " groups");
  RUSH_CHECK_VALUE(enumtype::holds<enumtype::kZeros>(o.padding_mode()), "ConvTranspose", D,
                   "d: padding_mode has to be kZeros, got ", enumtype::get_enum_name(o.padding_mode()));
  std::vector<int64_t> sizes = {o.in_channels(), o.out_channels() / o.groups()};
  sizes.insert(sizes.end(), o.kernel_size().begin(), o.kernel_size().end());
  weight = this->register_parameter("weight", rush::empty(sizes));
  bias = this->register_parameter("bias", o.bias() ? empty(o.out_channels()) : Tensor(), o.bias());
  reset_parameters();
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  detail::reset_weight_and_bias(weight, bias);
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  const auto& o = options;
  const auto unless = [](const char* name, const ExpandingArray<D>& values, int64_t value) {
    return values == ExpandingArray<D>(value) ? "" : detail::options_text(", ", name, "=", values);
  };
  stream << detail::module_text("ConvTranspose", D, "d(", o.in_channels(), ", ", o.out_channels(),
                                ", kernel_size=", o.kernel_size(), ", stride=", o.stride(),
                                unless("padding", o.padding(), 0), unless("dilation", o.dilation(), 1),
                                unless("output_padding", o.output_padding(), 0),
                                o.groups() != 1 ? detail::options_text(", groups=", o.groups()) : "",
                                o.bias() ? "" : detail::options_text(", bias=", false), ")");
}

template <size_t D, class Derived>
ExpandingArray<D> ConvTransposeNdImpl<D, Derived>::output_padding(const Tensor& input,
                                                                  const std::optional<IntArrayRef>& output_size) const {
  const auto& o = options;
  if (!output_size) return o.output_padding();
  const auto dims = static_cast<size_t>(input.dim());
  RUSH_CHECK_VALUE(output_size->size() == D || output_size->size() == dims, "ConvTranspose", D,
                   "d: expected an output_size of ", D, " or ", dims, " numbers, got ", *output_size);
  const IntArrayRef asked = output_size->slice(output_size->size() - D, D);
  std::array<int64_t, D> added;
  for (size_t d = 0; d < D; ++d) {
    const int64_t least = (input.size(static_cast<int64_t>(dims - D + d)) - 1) * o.stride()[d] - 2 * o.padding()[d] +
                          o.dilation()[d] * (o.kernel_size()[d] - 1) + 1;
    added[d] = asked[d] - least;
    RUSH_CHECK_VALUE(added[d] >= 0 && added[d] < o.stride()[d], "ConvTranspose", D, "d: output_size ", asked[d],
                     " is not within ", least, " and ", least + o.stride()[d] - 1);
  }
  return added;
}

template <size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(const Tensor& input, const std::optional<IntArrayRef>& output_size) {
  const ModuleScope scope(*this);
  constexpr auto dims = static_cast<int64_t>(D);
  RUSH_CHECK_VALUE(input.dim() == dims + 1 || input.dim() == dims + 2, "ConvTranspose", D, "d: Expected ", D + 1,
                   "D (unbatched) or ", D + 2, "D (batched) input to conv_transpose", D,
                   "d, but got input of size: ", bracketed(input.sizes()));
  const auto call = functional::ConvTransposeFuncOptions<D>()
                        .bias(bias)
                        .stride(options.stride())
                        .padding(options.padding())
                        .output_padding(output_padding(input, output_size))
                        .groups(options.groups())
                        .dilation(options.dilation());
  if constexpr (D == 1) return functional::conv_transpose1d(input, weight, call);
  if constexpr (D == 2) return functional::conv_transpose2d(input, weight, call);
  if constexpr (D == 3) return functional::conv_transpose3d(input, weight, call);
}

template class ConvTransposeNdImpl<1, ConvTranspose1dImpl>;
template class ConvTransposeNdImpl<2, ConvTranspose2dImpl>;
template class ConvTransposeNdImpl<3, ConvTranspose3dImpl>;

}  // namespace rush::nn
