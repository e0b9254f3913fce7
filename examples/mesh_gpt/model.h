// A GPT for a mesh of processes: its weights are split among those of "tp", its sequences among those of "cp", and its
// modules are stages for those of "pp". Shapes: B sequences of T tokens, C = n_embd, V = vocab_size.
#pragma once
#include <vector>

#include "core/distributed/device_mesh.h"
#include "nn/modules.h"
#include "nn/parallel/tensor_parallel.h"

namespace examples {

struct MeshGPTConfig {
  int64_t vocab_size = 128, block_size = 64, n_layer = 4, n_head = 4, n_embd = 128;
  // Norms and residual sums have a part of the positions each: Note [Tensor parallelism].
  bool sequence_parallel = false;
};

/// "embedding", "block0", ..., "head": tokens (B, T) -> this process's scores (B, T / cp, V / tp). All processes make
/// the same weights of the same seed, whatever the mesh. Throws ValueError where heads, width, vocabulary or positions
/// cannot be split so.
rush::nn::Sequential make_mesh_gpt(const MeshGPTConfig& config, const rush::distributed::DeviceMesh& mesh);

/// The parameters of a part of it that each process has whole and uses for its positions alone, with
/// `sequence_parallel`: their gradients are to be added up over "tp".
std::vector<rush::Tensor> parameters_of_positions(const rush::nn::Module& part);

}  // namespace examples
