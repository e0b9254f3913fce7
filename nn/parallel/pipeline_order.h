// PipelineOrder: in which order processes compute the stages of a pipeline, what that costs, and when they communicate.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rush::nn::parallel {

// Note [Pipeline schedules]
// A net is cut into S stages, a batch into M micro-batches. Stage s lies on process s % P. Its forward pass of a
// micro-batch needs that of stage s - 1, its backward pass needs its own forward pass and the backward pass of stage
// s + 1. In which order a process goes through its passes is a list of actions. On three processes with four
// micro-batches, where a backward pass takes as long as two forward passes:
//
//   GPipe    0  F0 F1 F2 F3 .  .  .  .  .  .  B0 B0 B1 B1 B2 B2 B3 B3
//            1  .  F0 F1 F2 F3 .  .  .  B0 B0 B1 B1 B2 B2 B3 B3 .  .
//            2  .  .  F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 .  .  .  .
//
//   1F1B     0  F0 F1 F2 .  .  .  .  B0 B0 F3 B1 B1 .  B2 B2 .  B3 B3
//            1  .  F0 F1 .  .  B0 B0 F2 B1 B1 F3 B2 B2 .  B3 B3 .  .
//            2  .  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 .  .  .  .
//
// The idle share, the bubble, is (P - 1) / (M + P - 1) in both. GPipe holds the activations of all micro-batches, 1F1B
// those of at most P - s on stage s. With V stages on each process (interleaved 1F1B) a pass is V times shorter and so
// is the time until the last process has something to do: the bubble is (P - 1) / (V * M + P - 1), and activations
// travel V times as often.
// Huang et al., GPipe, NeurIPS 2019; Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM, SC 2021, section 2.2.

/// What a process does at once, for one micro-batch on one of its stages.
struct PipelineAction {
  enum class Kind : uint8_t { FORWARD, BACKWARD, SEND_FORWARD, RECV_FORWARD, SEND_BACKWARD, RECV_BACKWARD };
  Kind kind = Kind::FORWARD;
  int stage = 0, micro_batch = 0;

  bool operator==(const PipelineAction&) const = default;
  std::string str() const;  // "2F0", "2SEND_B1", as PyTorch writes them: stage, what, micro-batch
};

/// What each process does. torch.distributed.pipelining's pipeline_order.
struct PipelineOrder {
  int stages = 0, micro_batches = 0;
  std::vector<std::vector<PipelineAction>> actions;  // of each process, in its order

  int processes() const { return static_cast<int>(actions.size()); }
  int process_of(int stage) const { return stage % processes(); }
};

// All three throw ValueError for numbers below 1.

/// All forward passes, then all backward passes; a stage on each process. ScheduleGPipe of
/// torch.distributed.pipelining.
PipelineOrder gpipe_order(int processes, int micro_batches);
/// Backward passes begin as soon as they can, and alternate with forward passes. Schedule1F1B.
PipelineOrder one_f_one_b_order(int processes, int micro_batches);
/// The same with `stages_per_process` stages on each process. Micro-batches go in rounds, M / P of them (rounded down),
/// through one stage of the process after the other. Throws ValueError unless there are at least as many micro-batches
/// as processes, and equally many in each round. ScheduleInterleaved1F1B.
PipelineOrder interleaved_1f1b_order(int processes, int stages_per_process, int micro_batches);

/// The forward passes alone.
PipelineOrder forward_only(const PipelineOrder& order);

/// When things would happen if messages took no time.
struct PipelineTimes {
  std::vector<std::vector<double>> ends;  // of each process's actions
  double total = 0;                       // until all is done
  double bubble = 0;                      // the share of the processes' time in which they wait
};

/// Lets the processes go through their lists, in which a pass of any stage takes so long. This is also the check of an
/// order: throws ValueError, which names the action, where a stage is on another process than Note [Pipeline schedules]
/// says, a pass is missing or there twice, or one comes before what it needs, so that processes would wait forever. An
/// order without any backward pass is valid.
PipelineTimes simulate(const PipelineOrder& order, double forward = 1, double backward = 2);

// Note [Messages of a pipeline]
// A message goes from one process's pass to another's. Where each process sends and receives is decided for all of them
// at once: messages are put in the order in which the simulated passes that make them end, and every process begins its
// own in that order. Then no process can wait for one that waits for it, not even where messages are carried out one
// after the other and each waits for its other end, as NCCL's are on their stream: of all messages that have not been
// exchanged, the first is next on both of its ends, and the passes before it are done.
//
// A send stands behind the pass that makes it, a receive behind the process's last send before it, as early as this
// order allows, so that it goes on during passes. It needs its memory from then on: for one micro-batch more than those
// whose graphs 1F1B holds on that stage, and for all on the last stage of GPipe, which holds them all anyway.

/// The order with its sends and receives. Stages of one process need none. Throws as simulate does.
PipelineOrder with_messages(const PipelineOrder& order);

}  // namespace rush::nn::parallel
