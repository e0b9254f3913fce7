// Padding: with a constant, or with what the border shows (reflect, replicate, circular).
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

using PadOp = Op<Tensor(const Tensor&, IntArrayRef)>;
using PadBackwardOp = Op<Tensor(const Tensor&, const Tensor&, IntArrayRef)>;

namespace ops {
inline constinit Op<Tensor(const Tensor&, IntArrayRef, std::string_view, std::optional<double>)> pad{
    "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, const Scalar&)> constant_pad_nd{
    "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"};
inline constinit PadOp _pad_circular{"aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor"};
// reflection_pad1d .. replication_pad3d and the gradients of each.
#define RUSH_BORDER_PAD(name, numbers)                                                                 \
  inline constinit PadOp name{"aten::" #name "(Tensor self, SymInt[" #numbers "] padding) -> Tensor"}; \
  inline constinit PadBackwardOp name##_backward{                                                      \
      "aten::" #name "_backward(Tensor grad_output, Tensor self, SymInt[" #numbers "] padding) -> Tensor"};
RUSH_BORDER_PAD(reflection_pad1d, 2)
RUSH_BORDER_PAD(reflection_pad2d, 4)
RUSH_BORDER_PAD(reflection_pad3d, 6)
RUSH_BORDER_PAD(replication_pad1d, 2)
RUSH_BORDER_PAD(replication_pad2d, 4)
RUSH_BORDER_PAD(replication_pad3d, 6)
#undef RUSH_BORDER_PAD
}  // namespace ops

/// Pads the last dimensions: `pad` counts (before, after) for the last one, then for the one before it, and so on.
/// Negative numbers cut. Mode "constant" fills with `value`, or 0; "reflect" mirrors without repeating the border,
/// "replicate" repeats it, "circular" wraps around: these three pad the last one to three of at most five dimensions.
/// https://pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
inline Tensor pad(const Tensor& self, IntArrayRef pad, std::string_view mode = "constant",
                  std::optional<double> value = std::nullopt) {
  return ops::pad(self, pad, mode, value);
}
inline Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value = 0) {
  return ops::constant_pad_nd(self, pad, value);
}

enum class PadMode : uint8_t { Reflect, Replicate };

namespace kernels {
// The last dimensions of `in` padded into `out`, and the sum of what was read of each element back into `grad_in`,
// which is zero. All are contiguous and of one number of dimensions; `pad` counts as pad's does.
inline constinit Kernel<void(const Tensor& out, const Tensor& in, IntArrayRef pad, PadMode mode)> border_pad{
    "border_pad"};
inline constinit Kernel<void(const Tensor& grad_in, const Tensor& grad_out, IntArrayRef pad, PadMode mode)>
    border_pad_backward{"border_pad_backward"};
}  // namespace kernels

}  // namespace rush
