// ShardedUnit: the parameters of one module that fully_shard has split among processes, which are gathered together.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "nn/parallel/fully_shard.h"

namespace rush::nn::parallel {

struct ForwardPass;  // in shard_schedule.cpp: see Note [When units gather]

// Note [Sharded parameters]
// Every process keeps some rows of each parameter, its shard, and a unit's parameters are whole only while its module
// computes. The parameter is one TensorImpl all the time, which the module, its parameters() and the optimiser hold: by
// set_data it stands for the shard (a tensor of its own) or for the whole parameter (another one), by turns.
//
//                  outside        forward         between       backward of the unit's nodes      after
//   parameter      shard          whole           shard         whole                             shard
//   whole memory   none           gathered        none          gathered                          none
//
// With a CPUOffloadPolicy shards and their gradients are on the CPU, and are copied to the device and from it.
//
// The storage of the whole parameter is one object all the time, too; what comes and goes is its memory, by
// StorageImpl::swap_memory. So what a graph has saved, the parameter itself or a view of its transpose, finds its
// memory again in the backward pass. The swap is no write: the storage's version stays, and a write by the program
// during the forward pass is noticed as everywhere.
//
// Gathering: all shards, padded to equally many rows, are copied into one flat tensor, one all_gather brings those of
// all processes, and each parameter's rows are copied to their place. Gradients take the same way back: a forward call
// gives each parameter an accumulator of its own, in whose place a hook takes the whole gradient. When the unit's last
// node has run, one reduce_scatter leaves the mean of each shard's gradient, which is added to the parameter's `grad`.

/// One unit. It observes its module's forward calls, and ShardSchedule tells it what to do.
class ShardedUnit final : public ForwardObserver, public std::enable_shared_from_this<ShardedUnit> {
 public:
  // `chunk` rows of each process, from `rank * chunk` on, of which some may lie behind the last row.
  struct Parameter {
    std::string name;
    Tensor tensor;        // the module's
    DimVector sizes;      // whole
    Tensor shard, whole;  // what it stands for by turns; `shard` is defined while it is whole
    Tensor gradient;      // whole, until it is reduced
    intrusive_ptr<Node> accumulator;
    int64_t version = 0;  // of the shard that was gathered
    int64_t chunk = 0, row_numel = 0;

    int64_t rows() const { return sizes[0]; }
    int64_t chunk_numel() const { return chunk * row_numel; }
    const Tensor& own() const { return shard.defined() ? shard : tensor; }  // this process's rows
  };
  struct Owner {
    ShardedUnit* unit = nullptr;  // null: not sharded
    size_t number = 0;
    const Parameter& parameter() const { return unit->parameters_[number]; }
  };

  /// Takes the rows of this process from the tensors, and keeps nothing else of them. The options have a process group.
  ShardedUnit(std::vector<std::string> names, const std::vector<Tensor>& tensors, FullyShardOptions options);
  ~ShardedUnit() override;

  /// The unit that a parameter belongs to.
  static Owner owner_of(const Tensor& parameter);

  const FullyShardOptions& options() const { return options_; }
  int64_t first_row(const Parameter& parameter) const;  // of this process's
  void set_synchronizes(bool on) { synchronizes_ = on; }

  void begin_forward() override;  // both in shard_schedule.cpp
  void end_forward() noexcept override;

  /// Begins to gather; nothing where that has begun or the parameters are whole.
  void begin_gather();
  /// Waits for what begin_gather has begun and nobody has used.
  void drop_gather();
  /// Before a forward call of the pass: frees whole parameters of an earlier one, which may be older than the shards.
  void enter_pass(uint64_t number);
  /// From one to the other the parameters are whole. Uses nest.
  void use();
  void end_use(bool frees) noexcept;

  /// Gives the parameters accumulators that run behind the node numbered `first`, for a forward call of `pass`.
  void expect_gradients(const std::shared_ptr<ForwardPass>& pass, uint64_t first);
  /// At the end of the call: only the graph keeps them, as far as it has used the parameters.
  void release_accumulators() noexcept;
  /// Begins to reduce the gradients that have come; false where there are none, or they are to wait for more.
  bool begin_reduction();
  void finish_reduction();
  void drop_gradients() noexcept;  // of a backward pass that has failed

  std::weak_ptr<ShardedUnit> next;  // whose forward call began after this one's

 private:
  class ArrivalHook;

  Tensor stored(const Tensor& rows) const;
  Tensor flat(int64_t blocks, int64_t block_numel, ScalarType dtype) const;
  void finish_gather();
  void free_whole() noexcept;
  void arrive(size_t number, Tensor gradient);
  void add_to_grad(const Parameter& parameter, Tensor gradient) const;

  const FullyShardOptions options_;
  const distributed::Group group_;  // among which rows are split
  const Device device_;             // of whole parameters
  std::vector<Parameter> parameters_;
  uint64_t last_pass_ = 0;
  int64_t block_numel_ = 0;           // of one process's rows of all parameters
  std::vector<int64_t> block_sizes_;  // of each
  int uses_ = 0, depth_ = 0;          // of forward calls within each other
  bool is_gathered_ = false, synchronizes_ = true;
  distributed::Arriving gathered_, reduced_;  // (processes, block_numel), (elements)
  std::vector<size_t> reducing_;              // numbers of parameters
};

}  // namespace rush::nn::parallel
