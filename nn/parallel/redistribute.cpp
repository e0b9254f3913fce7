// How local tensors of one placement become those of another.
#include "core/distributed/collectives.h"
#include "core/distributed/functional.h"
#include "core/ops/basic.h"
#include "nn/parallel/dtensor_parts.h"
#include "nn/parallel/group_dims.h"

namespace rush::nn::parallel::detail {

namespace {

using MeshDim = distributed::DeviceMesh::Dim;

Chunk chunk_at(int64_t coordinate, int64_t size, const MeshDim& in) { return chunk_of(coordinate, size, in.size); }

// This process's chunk of the sum.
Tensor reduce_scatter(const Tensor& summand, int64_t dim, const MeshDim& in) {
  const int64_t whole = summand.size(dim);
  const Tensor padded = padded_to(summand, dim, chunk_at(0, whole, in).size * in.size);
  const Tensor own = begin_sum_to_split(padded, dim, in.group).take();
  return own.narrow(dim, 0, chunk_at(in.coordinate, whole, in).size).contiguous();
}

// From chunks of dimension `from`, which has `whole` elements, to chunks of dimension `to`.
Tensor exchange(const Tensor& local, int64_t from, int64_t whole, int64_t to, const MeshDim& in) {
  std::vector<Tensor> inputs, outputs;
  DimVector sizes(local.sizes());
  sizes[to] = chunk_at(in.coordinate, local.size(to), in).size;
  for (int i = 0; i < in.size; ++i) {
    const Chunk theirs = chunk_at(i, local.size(to), in);
    inputs.push_back(local.narrow(to, theirs.begin, theirs.size).contiguous());
    sizes[from] = chunk_at(i, whole, in).size;
    outputs.push_back(empty(sizes, local.options()));
  }
  distributed::all_to_all(outputs, inputs, in.group);
  return cat(outputs, from);
}

// In one dimension of the mesh. `whole` are the sizes of what its processes hold together.
Tensor move(const Tensor& local, IntArrayRef whole, const MeshDim& in, Placement from, Placement to) {
  if (from == to) return local;
  const auto size_in = [&](Placement p) { return whole[static_cast<size_t>(p.dim)]; };
  if (from.is_partial()) {
    return to.is_shard() ? reduce_scatter(local, to.dim, in)
                         : distributed::functional::all_reduce(local, distributed::ReduceOp::SUM, in.group);
  }
  if (from.is_shard() && to.is_shard()) return exchange(local, from.dim, size_in(from), to.dim, in);
  const Tensor all = from.is_shard() ? gather_chunks(local, from.dim, size_in(from), in.group) : local;
  if (to.is_partial()) return in.coordinate == 0 ? all : zeros_like(all);
  if (to.is_replicate()) return all;
  const Chunk own = chunk_at(in.coordinate, size_in(to), in);
  return all.narrow(to.dim, own.begin, own.size).clone(MemoryFormat::Contiguous);
}

// Whether chunks of a dimension that changes are split once more, before or afterwards, by a later one of the mesh.
bool is_nested(const Placements& from, const Placements& to) {
  const auto both_split = [](Placement a, Placement b) { return a.is_shard() && a == b; };
  for (size_t outer = 0; outer < from.size(); ++outer) {
    for (size_t inner = outer + 1; inner < from.size() && from[outer] != to[outer]; ++inner) {
      for (const Placement a : {from[outer], to[outer]}) {
        if (both_split(a, from[inner]) || both_split(a, to[inner])) return true;
      }
    }
  }
  return false;
}

}  // namespace

DimVector local_sizes(const DTensorSpec& spec) {
  DimVector local = spec.sizes;
  for (size_t i = 0; i < spec.placements.size(); ++i) {
    if (!spec.placements[i].is_shard()) continue;
    int64_t& size = local[static_cast<size_t>(spec.placements[i].dim)];
    size = chunk_at(spec.mesh.dims()[i].coordinate, size, spec.mesh.dims()[i]).size;
  }
  return local;
}

Tensor redistribute_local(Tensor local, DTensorSpec from, const Placements& to) {
  const auto step = [&](size_t i, Placement next) {
    DTensorSpec outer = from;
    outer.placements.resize(i);
    local = move(local, local_sizes(outer), from.mesh.dims()[i], from.placements[i], next);
    from.placements[i] = next;
  };
  // Chunks of chunks are put together from the innermost on.
  for (size_t i = is_nested(from.placements, to) ? to.size() : 0; i-- > 0;) {
    if (from.placements[i].is_shard()) step(i, Replicate());
  }
  for (size_t i = 0; i < to.size(); ++i) step(i, to[i]);
  return local;
}

}  // namespace rush::nn::parallel::detail
