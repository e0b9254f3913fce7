// How local tensors of one placement become those of another.
#pragma once
#include "nn/parallel/dtensor.h"

namespace rush::nn::parallel::detail {

/// The sizes of this process's local tensor.
DimVector local_sizes(IntArrayRef sizes, const distributed::DeviceMesh& mesh, const Placements& placements);

/// This process's local tensor of `sizes` as a whole, once it lies as `to` says. Every process calls it. It shares
/// memory with `local` where nothing changes.
Tensor redistribute_local(Tensor local, IntArrayRef sizes, const distributed::DeviceMesh& mesh, Placements from,
                          const Placements& to);

}  // namespace rush::nn::parallel::detail
