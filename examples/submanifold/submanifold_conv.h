// An operator that the library does not have, defined by a program: the submanifold sparse convolution of Graham and
// van der Maaten, "Submanifold sparse convolutional networks" (2017).
//
// Its input is a sparse tensor of features at some sites of a grid, (B, spatial..., C) with the channels as the one
// dense dimension. A convolution of stride 1 that keeps the sizes would make a site of every neighbour of a site, and
// after a few layers all of the grid; this one has outputs at the sites of its input only, where it computes what the
// dense one does. So its work is that of the sites, however large the grid.
#pragma once
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace examples {

/// Which sites are neighbours: all that a layer has to know of them, so layers on the same sites share one.
struct RuleBook {
  /// Of the sites of `input`, COO of sizes (B, spatial..., C) and coalesced, for a kernel of these odd sizes, one for
  /// each spatial dimension. Throws rush::ValueError for anything else.
  RuleBook(const rush::Tensor& input, rush::IntArrayRef kernel_size);

  /// (2, pairs): the numbers of an input's site and of the output's site that it counts for; first all pairs that meet
  /// at the first place of the kernel, then those at the second, in row-major order.
  rush::Tensor pairs;
  std::vector<int64_t> counts;  // how many pairs there are at each place of the kernel
  int64_t sites;
};

namespace ops {
inline constinit rush::Op<rush::Tensor(const rush::Tensor&, const rush::Tensor&, const std::optional<rush::Tensor>&,
                                       const rush::Tensor&, rush::IntArrayRef)>
    submanifold_conv{
        "examples::submanifold_conv(Tensor input, Tensor weight, Tensor? bias, Tensor pairs, int[] counts) -> Tensor"};
}  // namespace ops

/// Makes the operator known to the library, with its kernel for sparse tensors on either device and its derivative. To
/// be called with rush::registry(), before the operator and before other threads use the library; a second time changes
/// nothing.
void register_submanifold_conv(rush::Registry& registry);

/// The cross-correlation of `input` with `weight` (O, C, kernel...), as conv2d and conv3d with padding that keeps the
/// sizes, at the input's sites: (B, spatial..., C) -> (B, spatial..., O), coalesced. `bias` (O) is optional. Throws
/// rush::ValueError for shapes, layouts or rules that do not fit, and for an input that is not coalesced,
/// rush::TypeError for dtypes that differ. The derivative can be differentiated again.
rush::Tensor submanifold_conv(const rush::Tensor& input, const rush::Tensor& weight, const rush::Tensor& bias,
                              const RuleBook& rules);
/// With rules of its own.
rush::Tensor submanifold_conv(const rush::Tensor& input, const rush::Tensor& weight, const rush::Tensor& bias = {});

/// A tensor with the sites of `input` and other features: `values` (sites, C'). How what works on single sites, an
/// activation or a norm, is applied.
rush::Tensor at_sites_of(const rush::Tensor& input, const rush::Tensor& values);

}  // namespace examples
