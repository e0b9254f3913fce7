// How local tensors of one placement become those of another.
#include <algorithm>

#include "core/distributed/collectives.h"
#include "core/distributed/functional.h"
#include "core/ops/basic.h"
#include "nn/parallel/dtensor_parts.h"

namespace rush::nn::parallel::detail {

namespace {

using MeshDim = distributed::DeviceMesh::Dim;
namespace functional = distributed::functional;

struct Chunk {
  int64_t begin, size;
};

int64_t chunk_size(int64_t size, const MeshDim& in) { return (size + in.size - 1) / in.size; }

Chunk chunk_at(int64_t coordinate, int64_t size, const MeshDim& in) {
  const int64_t each = chunk_size(size, in), begin = std::min(coordinate * each, size);
  return {begin, std::min(each, size - begin)};
}

// With rows of zeros behind its own, `rows` of them.
Tensor padded(const Tensor& t, int64_t rows) {
  DimVector missing(t.sizes());
  missing[0] = rows - t.size(0);
  return missing[0] == 0 ? t : cat({t, zeros(missing, t.options())});
}

// All processes' chunks of a dimension of `whole` elements.
Tensor gather(const Tensor& local, int64_t dim, int64_t whole, const MeshDim& in) {
  const Tensor rows = padded(local.transpose(0, dim), chunk_size(whole, in));
  return functional::all_gather(rows, in.group).narrow(0, 0, whole).transpose(0, dim).contiguous();
}

// This process's chunk of the sum.
Tensor reduce_scatter(const Tensor& summand, int64_t dim, const MeshDim& in) {
  const int64_t whole = summand.size(dim);
  const Tensor rows = padded(summand.transpose(0, dim), chunk_size(whole, in) * in.size);
  const Tensor own = functional::reduce_scatter(rows, distributed::ReduceOp::SUM, in.group);
  return own.narrow(0, 0, chunk_at(in.coordinate, whole, in).size).transpose(0, dim).contiguous();
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
                         : functional::all_reduce(local, distributed::ReduceOp::SUM, in.group);
  }
  if (from.is_shard() && to.is_shard()) return exchange(local, from.dim, size_in(from), to.dim, in);
  const Tensor all = from.is_shard() ? gather(local, from.dim, size_in(from), in) : local;
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
