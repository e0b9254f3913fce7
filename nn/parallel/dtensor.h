// DTensor: a tensor that the processes of a mesh hold together, and on which operators compute as on a whole one.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/device_mesh.h"
#include "core/tensor.h"

namespace rush::nn::parallel {

// Note [Distributed tensors]
// A DTensor is a Tensor whose sizes are those of the whole, and of which each process has a local tensor. For each
// dimension of the mesh a placement says what the local tensors of the processes that differ in it are:
//
//     Replicate   the same
//     Shard(d)    chunks of ceil(n / processes) in dimension d; the last ones are smaller, or empty
//     Partial     summands: the whole is their sum
//
// The element type, sizes and device of a DTensor are those of any tensor. It has no memory of its own: data_ptr() is
// null, as on meta. The local tensor hangs on its storage, so that detach(), set_data() and what autograd saves keep
// it.
//
// Operators find DTensors by a dispatch key, above autograd, that every call carries from the first DTensor of a
// program on. The key's fallback (nn/parallel/dtensor_dispatch.cpp) chooses placements for the arguments by the
// operator's rule, redistributes those that lie otherwise, calls the operator on the local tensors, and makes DTensors
// of what it returns. What it calls is recorded, so that derivatives of operators need no rules: Note [Gradients of
// distributed tensors].

/// How a tensor lies in one dimension of a mesh. torch.distributed.tensor.Placement.
struct Placement {
  enum class Kind : uint8_t { Replicate, Shard, Partial };
  Kind kind = Kind::Replicate;
  int64_t dim = 0;  // of the tensor, for Shard

  bool is_shard() const { return kind == Kind::Shard; }
  bool is_partial() const { return kind == Kind::Partial; }
  bool is_replicate() const { return kind == Kind::Replicate; }
  bool operator==(const Placement&) const = default;
};
/// Chunks in dimension `dim`, which counts from the end where it is negative.
constexpr Placement Shard(int64_t dim) { return {Placement::Kind::Shard, dim}; }
constexpr Placement Replicate() { return {}; }                        // the same on all processes
constexpr Placement Partial() { return {Placement::Kind::Partial}; }  // summands
using Placements = std::vector<Placement>;                            // one for each dimension of the mesh
void append(std::string& out, const Placement& placement);            // "Shard(0)", "Replicate", "Partial"

/// A handle on a tensor that is distributed; as a Tensor it goes wherever tensors go. The functions are differentiable.
/// torch.distributed.tensor.DTensor.
class DTensor : public Tensor {
 public:
  /// Throws TypeError for a tensor that is not distributed.
  explicit DTensor(const Tensor& tensor);
  static bool is_dtensor(const Tensor& tensor);

  /// The tensor of which `local` is this process's local tensor. `sizes` are those of the whole; without them all
  /// processes have local tensors of these sizes. Every process calls it. Throws ValueError where there is not one
  /// placement for each dimension of the mesh, and for a local tensor of other sizes than this process's chunk.
  static DTensor from_local(const Tensor& local, const distributed::DeviceMesh& mesh, const Placements& placements,
                            OptionalIntArrayRef sizes = {});
  /// This process's local tensor, which shares memory with the DTensor. Its gradient lies as the tensor does, a Partial
  /// one's is replicated; `grad_placements` says otherwise, as where processes compute with a replicated tensor on
  /// data of their own: Partial().
  Tensor to_local(const std::optional<Placements>& grad_placements = std::nullopt) const;
  /// The same tensor in other placements, by the collectives that these take: all_gather, all_reduce, reduce_scatter
  /// or all_to_all in each dimension of the mesh that changes. Throws ValueError as from_local.
  DTensor redistribute(const Placements& placements) const;
  /// The whole tensor, on each process.
  Tensor full_tensor() const;

  const distributed::DeviceMesh& device_mesh() const;
  const Placements& placements() const;
};

/// "DTensor(local_tensor=tensor([0., 1.]), device_mesh=tp 2, placements=(Shard(0)))"; a stream prints it, too.
std::string to_string(const DTensor& tensor);

/// A leaf of its own with the values of `tensor`, which all processes have, and its requires_grad. Throws ValueError as
/// DTensor::from_local. torch.distributed.tensor.distribute_tensor, which sends the first process's values to the
/// others.
DTensor distribute_tensor(const Tensor& tensor, const distributed::DeviceMesh& mesh, const Placements& placements);

}  // namespace rush::nn::parallel
