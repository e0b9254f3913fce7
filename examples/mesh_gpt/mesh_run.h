// How gpt and gpt2 train on a mesh: what they refuse there, and the checkpoints of such a run.
#pragma once
#include <cstdint>
#include <string>

#include "examples/memory_options.h"
#include "examples/mesh_gpt/training.h"

namespace examples {

// Note [Checkpoints on a mesh]
// The file checkpoint.safetensors of a run on a mesh lacks the weights and the optimiser's states. All processes write
// these to a folder of their own, which has the number of steps in its name, checkpoint-40/ (Note [Sharded
// checkpoints]); then the first process replaces the file, which says how many steps are done, and removes older
// folders. So a run that is killed at any moment has a file and the folder that belongs to it. Before the first step
// there is no folder: the weights are those of the seed, or of the file that they are read from.
//
// Such a run goes on with any mesh, also that of a single process.

/// Writes the folder beside `checkpoint`, a file's path. Every process calls it. Throws as save_parts.
void save_shards(const std::string& checkpoint, int64_t iteration, const MeshNet& net,
                 const rush::optim::AdamW& optimizer);
/// Removes the folders of other iterations. One process calls it, when the file is written.
void remove_other_shards(const std::string& checkpoint, int64_t iteration);
/// Has the net and the optimiser take what save_shards has written on any mesh. Throws as load_parts and
/// load_state_parts.
void load_shards(const std::string& checkpoint, int64_t iteration, const MeshNet& net, rush::optim::AdamW& optimizer);

/// Throws ValueError, which names the option, for what only processes that have the whole model do.
void check_mesh(const MeshOptions& options, bool graph, const std::string& dtype, double dropout,
                const MemoryOptions& memory);
/// Whether a run of so many processes trains a MeshNet: by its options, or because it goes on from the `checkpoint` of
/// such a run, where the path is not empty. Throws ValueError where --dp is another number of processes, or the
/// checkpoint is of processes that have the whole model and the options ask for a mesh; IOError where it is damaged.
bool runs_on_mesh(const MeshOptions& options, int64_t processes, const std::string& checkpoint);

}  // namespace examples
