// Modules whose parameters are DTensors.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "nn/parallel/dtensor.h"

namespace rush::nn::parallel {

/// How a parameter is placed, by its name in the module; no placements for one that is replicated.
using PartitionFunction = std::function<Placements(const std::string& name, const Tensor& parameter)>;

/// Makes DTensors of all parameters and buffers of the module and those below it, in place: optimisers and members keep
/// pointing at them. They are the same on all processes before. torch.distributed.tensor.distribute_module.
void distribute_module(Module& module, const distributed::DeviceMesh& mesh, const PartitionFunction& partition = {});

/// How the parameters of a Linear or an Embedding are split in a dimension of the mesh: by output features, or by input
/// features (rows of an embedding). torch.distributed.tensor.parallel.ColwiseParallel and RowwiseParallel.
enum class ParallelStyle : uint8_t { Colwise, Rowwise };
using ParallelizePlan = std::vector<std::pair<std::string, ParallelStyle>>;

/// distribute_module by a plan: {{"query", ParallelStyle::Colwise}, {"project", ParallelStyle::Rowwise}} splits the
/// modules that are registered under these names, wherever they are, in the dimension `dim` of the mesh; what the plan
/// does not name is replicated. Inputs and results take the placements that operators give them: Note [Rules of
/// operators]. Throws ValueError for a dimension that the mesh does not have, and for a name that no module has, or one
/// that is neither a Linear nor an Embedding.
/// torch.distributed.tensor.parallel.parallelize_module.
void parallelize_module(Module& module, const distributed::DeviceMesh& mesh, const ParallelizePlan& plan,
                        std::string_view dim = "tp");

}  // namespace rush::nn::parallel
