// The parameters of modules that are split among processes, as parts of whole ones: for sharded checkpoints.
#pragma once
#include <vector>

#include "core/distributed/checkpoint_folder.h"
#include "nn/module.h"

namespace rush::nn::parallel {

/// What this process has of each parameter and buffer of the module, under their names in it: all of one, its part in
/// one dimension (a SplitModule's), its rows (fully_shard's), or rows of its part. Parameters come first, in the order
/// of parameters(). For save_parts and load_parts. What is copied into a sharded parameter's `local`, outside of a
/// forward call, is what the next call gathers.
std::vector<distributed::TensorPart> module_parts(const Module& module);

}  // namespace rush::nn::parallel
