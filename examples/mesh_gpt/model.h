// GPT-2's model for a mesh of processes: its weights are split among those of "tp", its sequences among those of "cp",
// and its modules are stages for those of "pp". Shapes: B sequences of T tokens, C = n_embd, V as padded.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/device_mesh.h"
#include "examples/gpt/gpt.h"
#include "examples/precision.h"
#include "nn/parallel/tensor_parallel.h"

namespace examples {

// Note [GPT-2 on a mesh]
// A process makes the whole model as one process does, of the same seed or file, and takes its parts, so that all
// meshes begin with one process's weights. Parameters keep GPT-2's names, with these differences:
//
// - The rows of c_attn stand head by head, each head's query, key and value one behind the other, so that a process of
//   "tp" gets whole heads when the rows are cut into equal chunks: `rows_by_head`.
// - The table of tokens has a multiple of 64 rows, which "tp" can split. A bias of -1e30 keeps those that stand for no
//   token out of softmax. It is finite, unlike that of Note [A padded vocabulary], since a process may have no other.
// - The table is there twice, in the embedding and in the head, which may be on two processes of "pp". MeshNet adds the
//   gradients of both up, so they stay equal.

/// What a mesh's modules have in common.
struct MeshModelOptions {
  // Norms and residual sums have a part of the positions each: Note [Tensor parallelism].
  bool sequence_parallel = false;
  bool checkpoint_blocks = false;  // they keep only their input: Note [Checkpointing]
  Precision precision{"float32", rush::kCPU};
};

/// "embedding", "block0", ..., "head": tokens (B, T) -> this process's scores (B, T / cp, V / tp). Throws ValueError
/// where heads, width or positions cannot be split so, and NotImplementedError for dropout.
rush::nn::Sequential make_mesh_gpt(const GPT& whole, const rush::distributed::DeviceMesh& mesh,
                                   const MeshModelOptions& options);

/// The parameters of a part of it that each process has whole and uses for its positions alone, with
/// `sequence_parallel`: their gradients are to be added up over "tp".
std::vector<rush::Tensor> parameters_of_positions(const rush::nn::Module& part);

/// "block3.attn.c_attn.weight" -> "h.3.attn.c_attn.weight": the name of a parameter in GPT-2.
std::string name_in_gpt(const std::string& name);

/// Of c_attn's weight or bias. `rows_by_kind` leads back: all queries, all keys, all values.
rush::Tensor rows_by_head(const rush::Tensor& rows, int64_t heads);
rush::Tensor rows_by_kind(const rush::Tensor& rows, int64_t heads);

/// The rows that the table of tokens has on a mesh.
int64_t padded_rows(int64_t rows);

}  // namespace examples
