// What DTensors are made of, for the files that implement them.
#pragma once
#include "core/dispatch/key.h"
#include "nn/parallel/dtensor.h"

namespace rush::nn::parallel::detail {

struct DTensorSpec {
  distributed::DeviceMesh mesh;
  Placements placements;
  DimVector sizes;  // of the whole
};
struct DTensorState {
  Tensor local;  // autograd does not follow it
  DTensorSpec spec;
};
/// Null for a tensor that is not distributed, or undefined.
const DTensorState* dtensor_state(const Tensor& tensor);

/// The recorded functions that lead from a local tensor to a DTensor and back: Note [Gradients of distributed tensors].
/// `gradient` says how the gradient of the local tensor lies.
Tensor wrap_local(const Tensor& local, const DTensorSpec& spec);
Tensor unwrap_local(const Tensor& tensor, const Placements& gradient);

Placements all_replicated(const distributed::DeviceMesh& mesh);

/// The sizes of this process's local tensor.
DimVector local_sizes(const DTensorSpec& spec);
/// This process's local tensor once it lies as `to` says; it shares memory with `local` where nothing changes. Every
/// process calls it.
Tensor redistribute_local(Tensor local, DTensorSpec from, const Placements& to);

/// The key at which calls stop once there is a DTensor. The first call takes it, while no other thread calls operators.
DispatchKey dtensor_key();

}  // namespace rush::nn::parallel::detail
