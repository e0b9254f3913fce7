// What a step of a transformer's training takes on a mesh of processes, in memory and time, before anything runs; and
// which mesh to take.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

// Note [Cost of a step]
// The formulas stand in docs/distributed.md, "Which mesh: a planner". Their model has a split embedding, L blocks
// (norm, attention, norm, perceptron of width 4 C), and a norm with scores of V tokens; float32, AdamW, causal
// attention that stores no scores. A process computes b = batch / (dp fsdp M) sequences of t = T / cp positions in each
// of M micro-batches, and with sequence parallelism s = t / tp of these between the products, else s = t.
//
// A block keeps 4 b C (4 s + 12 t / tp) bytes: the inputs of both norms and what these make; and of each process's
// features queries, keys, values and the attention's result, and gelu's argument and result (4 C each). Activations are
// there for all micro-batches that a pipeline's order begins before it ends the first. The backward pass takes twice
// the products of the forward pass, and attention 2.5 times.

/// Operators in both passes of a block.
inline constexpr double kCallsOfBlock = 90;

/// The sizes of a model and of the batch of all processes together.
struct TransformerShape {
  int64_t layers = 4, heads = 4, width = 128, vocabulary = 128, sequence = 64, batch = 16;
  int64_t parameters() const;  // throws ValueError where they do not fit 64 bits
};

/// How processes share a training: the options of examples/mesh_gpt. Processes of one tp group have neighbouring ranks,
/// then come cp, fsdp, dp and pp.
struct TrainingMesh {
  int64_t dp = 1, fsdp = 1, tp = 1, cp = 1, pp = 1;
  int64_t stages_per_process = 1, micro_batches = 1;  // more than one stage: interleaved 1F1B
  bool sequence_parallel = false, gpipe = false;

  int64_t processes() const { return dp * fsdp * tp * cp * pp; }
};

/// Between two processes.
struct Link {
  double latency = 0, bytes_per_second = 0;  // latency in seconds
};

/// What one process's device does, while all others do the same.
struct DeviceRates {
  double products = 0;      // FLOP/s of float32 matrix products
  double element_wise = 0;  // bytes/s that a block's other operators read and write
  double copies = 0;        // bytes/s, read and written: optimisers and copies
  double call = 0;          // seconds in which the host calls an operator of a module, and notes what autograd needs
  Link near, far;           // within a machine, and between machines
  int64_t per_machine = 8;  // processes
  bool overlaps = true;     // communicates, and calls, while it computes
  double processors = 1;    // of its own; below 1, a process that waits leaves the others more
  double waiting = 0;       // seconds that a collective or a message takes longer, since processes come at other times
};

/// Bytes, on the process that needs most, when it needs most.
struct StepMemory {
  double parameters = 0, optimizer_states = 0, gradients = 0, activations = 0, temporaries = 0;
  double peak() const { return parameters + optimizer_states + gradients + activations + temporaries; }
};

/// Seconds.
struct StepTime {
  double computing = 0;   // of the process that computes most, with its element-wise operators
  double tp = 0, cp = 0;  // collectives and messages that it waits for
  double fsdp = 0, dp = 0;
  double pipeline = 0;  // the bubble and messages
  double optimizer = 0;
  double total() const { return computing + tp + cp + fsdp + dp + pipeline + optimizer; }
};

struct Plan {
  TrainingMesh mesh;
  StepMemory memory;
  StepTime time;
};

/// Both throw ValueError where the mesh cannot split the model or the batch: see `obstacle`.
StepMemory predict_memory(const TransformerShape& shape, const TrainingMesh& mesh);
StepTime predict_time(const TransformerShape& shape, const TrainingMesh& mesh, const DeviceRates& rates);

/// Why the mesh cannot train the model; empty where it can. No size, and no number of processes, is above 2^20.
std::string obstacle(const TransformerShape& shape, const TrainingMesh& mesh);

/// All meshes of so many processes whose steps need at most `bytes`, the fastest first; where none does, the one that
/// needs least. tp stays within a machine. Empty where no mesh can train the model. Throws ValueError for numbers
/// below 1, and for more than 2^20 processes.
std::vector<Plan> propose(const TransformerShape& shape, int64_t processes, double bytes, const DeviceRates& rates);

}  // namespace examples
