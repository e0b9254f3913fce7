// PowerSGD: gradients travel as products of narrow matrices.
#pragma once
#include "nn/arg.h"
#include "nn/parallel/comm_hooks.h"

namespace rush::nn::parallel {

// Note [PowerSGD]
// Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
// 2019, Algorithm 1. A gradient M (n, m) is approximated by P Q^T of rank r, in one step of subspace iteration, so that
// (n + m) r numbers travel in place of n m:
//
//   M += error           of this process's last step
//   P  = M orth(Q)       (n, r); averaged over processes
//   P  = orth(P)         the same on all processes
//   Q  = M^T P           (m, r); averaged over processes, and the next step's Q
//   M' = P Q^T           error = M - M'
//
// Both are linear in M, so P Q^T approximates the mean of all processes' M. orth is Q of a QR decomposition. P of all
// buckets travels while the backward pass goes on; each Q waits until its P is there.

/// The arguments of torch's PowerSGDState.
struct PowerSGDOptions {
  /// The rank r of the approximation.
  RUSH_ARG(int64_t, matrix_approximation_rank) = 1;
  /// How many backward passes send whole gradients before the first that compresses; at least 2, since buckets are made
  /// again after the first one.
  RUSH_ARG(int64_t, start_powerSGD_iter) = 1000;
  /// A matrix is compressed where that divides its number of elements by more than this; others travel whole.
  RUSH_ARG(double, min_compression_rate) = 2;
  /// Whether what the approximation leaves out is added to the next gradient. It takes the memory of a gradient.
  RUSH_ARG(bool, use_error_feedback) = true;
  /// Whether a step begins with the last step's Q, not with a random one.
  RUSH_ARG(bool, warm_start) = true;
  /// Of random matrices. The same on all processes.
  RUSH_ARG(uint64_t, random_seed) = 0;
};

/// A hook that keeps what it needs from step to step, for one DistributedDataParallel. Gradients with several
/// dimensions are matrices of size(0) rows. Those in 16 bits are compressed in float32.
///   ddp->register_comm_hook(powerSGD_hook(PowerSGDOptions().matrix_approximation_rank(4).start_powerSGD_iter(100)));
/// Throws ValueError for a rank below 1, a start below 2 and a compression rate that is not above 0.
/// torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.
CommHook powerSGD_hook(const PowerSGDOptions& options = {});

}  // namespace rush::nn::parallel
