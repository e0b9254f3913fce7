// What DTensors are made of, for the files that implement them.
#pragma once
#include "core/dispatch/key.h"
#include "nn/parallel/dtensor.h"

namespace rush::nn::parallel::detail {

struct DTensorState {
  Tensor local;  // autograd does not follow it
  distributed::DeviceMesh mesh;
  Placements placements;
};
/// Null for a tensor that is not distributed, or undefined.
const DTensorState* dtensor_state(const Tensor& tensor);

/// The recorded functions that lead from local tensors to a DTensor and back, see Note [Gradients of distributed
/// tensors]. `sizes` are those of the whole, `gradient` says how the gradient of the local tensor lies.
Tensor wrap_local(const Tensor& local, const distributed::DeviceMesh& mesh, const Placements& placements,
                  IntArrayRef sizes);
Tensor unwrap_local(const Tensor& tensor, const Placements& gradient);

/// One for each dimension of the mesh.
Placements all_replicated(const distributed::DeviceMesh& mesh);

/// At which calls stop once there is a DTensor. The first call takes it, while no other thread calls operators.
DispatchKey dtensor_key();

}  // namespace rush::nn::parallel::detail
