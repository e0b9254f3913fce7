#include "nn/parallel/distribute_module.h"

#include <algorithm>
#include <map>

#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/parallel/dtensor_parts.h"

namespace rush::nn::parallel {

// Weights are (out, in), those of embeddings (rows, features); a bias has the size (out).
static Placement placement_of(const Tensor& parameter, ParallelStyle style, bool is_embedding) {
  const int64_t features = is_embedding ? 1 : 0;
  if (style == ParallelStyle::Colwise) return Shard(features);
  return parameter.dim() == 2 ? Shard(1 - features) : Replicate();
}

void distribute_module(Module& module, const distributed::DeviceMesh& mesh, const PartitionFunction& partition) {
  const Placements replicated = detail::all_replicated(mesh);
  for (const auto& each : module.named_parameters()) {
    const Placements placed = partition ? partition(each.key(), each.value()) : Placements();
    each.value().set_data(distribute_tensor(each.value(), mesh, placed.empty() ? replicated : placed));
  }
  for (const Tensor& buffer : module.buffers()) buffer.set_data(distribute_tensor(buffer, mesh, replicated));
}

void parallelize_module(Module& module, const distributed::DeviceMesh& mesh, const ParallelizePlan& plan,
                        std::string_view dim) {
  const char* who = "parallelize_module";
  const auto in = std::ranges::find(mesh.dims(), dim, &distributed::DeviceMesh::Dim::name);
  RUSH_CHECK_VALUE(in != mesh.dims().end(), who, ": there is no dimension '", std::string(dim), "' in ", mesh.str());
  std::map<std::string, Placements> placed;  // by names of parameters
  for (const auto& [wanted, style] : plan) {
    bool found = false;
    for (const auto& each : module.named_modules("", false)) {
      if (each.key() != wanted && !each.key().ends_with("." + wanted)) continue;
      const bool is_embedding = each.value()->as<Embedding>();
      RUSH_CHECK_VALUE(is_embedding || each.value()->as<Linear>(), who, ": '", each.key(), "' is a ",
                       each.value()->name(), ", neither a Linear nor an Embedding");
      for (const auto& parameter : each.value()->named_parameters(false)) {
        Placements& own = placed[each.key() + "." + parameter.key()] = detail::all_replicated(mesh);
        own[static_cast<size_t>(in - mesh.dims().begin())] = placement_of(parameter.value(), style, is_embedding);
      }
      found = true;
    }
    RUSH_CHECK_VALUE(found, who, ": no module is named '", wanted, "'");
  }
  distribute_module(module, mesh, [&](const std::string& name, const Tensor&) { return placed[name]; });
}

}  // namespace rush::nn::parallel
