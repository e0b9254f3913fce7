// Collectives over one dimension of a tensor: what tensor, sequence and context parallelism are made of.
#pragma once
#include "core/distributed/process_group.h"

namespace rush::nn::parallel {

// Note [Regions of tensor parallelism]
// Where a net is computed by several processes together, each tensor is one of three: whole and the same on all
// (replicated), a part of it on each (split), or one of which each has a summand (partial). All processes come to the
// same loss, so the gradient of a replicated tensor is replicated, too. Functions lead from one to another, each with a
// derivative that leads back (Megatron-LM: https://arxiv.org/abs/1909.08053, section 3; for sequences
// https://arxiv.org/abs/2205.05198, section 4.2.2):
//
//   function             forward                 backward
//   copy_to_group        replicated, as it is    partial -> replicated: a sum
//   sum_from_group       partial -> replicated   replicated, as it is
//   scatter_to_group     replicated -> split     split -> replicated
//   gather_from_group    split -> replicated     replicated -> split: its own part
//   gather_to_compute    split -> replicated     partial -> split: a reduce_scatter
//   sum_to_split         partial -> split        split -> replicated: an all_gather
//
// gather_from_group is for what follows on all processes alike; gather_to_compute for what each computes a part of.
//
// They differ from the functions of core/distributed/functional.h, which know of no common loss: there, the derivative
// of all_reduce is an all_reduce.

/// All throw DistributedError where `group` is null: this process is no member.

/// `x` as it is; its gradient is the sum of those of all processes.
Tensor copy_to_group(const Tensor& x, const distributed::Group& group);
/// The sum of the processes' `x`; the gradient is that of the sum.
Tensor sum_from_group(const Tensor& x, const distributed::Group& group);
/// This process's part of `x`: `dim` is divided into as many equal ones. Throws ValueError where that cannot be.
Tensor scatter_to_group(const Tensor& x, int64_t dim, const distributed::Group& group);
/// The parts of all processes one behind the other in `dim`; the gradient is that of the own part.
Tensor gather_from_group(const Tensor& x, int64_t dim, const distributed::Group& group);
/// The same; the gradient is the sum of those that all processes have for this part.
Tensor gather_to_compute(const Tensor& x, int64_t dim, const distributed::Group& group);
/// This process's part in `dim` of the sum of the processes' `x`. Throws ValueError where `dim` cannot be divided.
Tensor sum_to_split(const Tensor& x, int64_t dim, const distributed::Group& group);

/// Adds up over the group's processes the gradients of parameters that each of them has whole and uses for its part of
/// a sequence, as norms do. In one collective, after the backward pass. Parameters without a gradient on this process
/// count as zeros. Throws TypeError for parameters of several dtypes.
void sum_gradients(const std::vector<Tensor>& parameters, const distributed::Group& group);

namespace detail {

// Of a dimension of `size` elements that is split unevenly: chunks of ceil(size / processes), of which the last ones
// are smaller, or empty.
struct Chunk {
  int64_t begin, size;
};
Chunk chunk_of(int64_t rank, int64_t size, int64_t processes);
// All processes' chunks one behind the other in `dim`, which then has `size` elements: a new tensor.
Tensor gather_chunks(const Tensor& chunk, int64_t dim, int64_t size, const distributed::Group& group);
// `x` with zeros behind its own elements in `dim`, `size` in all.
Tensor padded_to(const Tensor& x, int64_t dim, int64_t size);

// The parts of all processes one behind the other in `dim`, of which `wait` returns all.
class Gathering {
 public:
  Gathering(const Tensor& x, int64_t dim, const distributed::Group& group);
  Tensor wait();

 private:
  Tensor all_;  // (processes, sizes of x...)
  const int64_t dim_;
  distributed::WorkPtr work_;
};

// Begins sum_to_split.
distributed::Arriving begin_sum_to_split(const Tensor& x, int64_t dim, const distributed::Group& group);

// A tensor as products take it: in 16 bits where autocast is on.
Tensor lowered(const Tensor& t);

// The size of each process's part of a tensor in `dim`, and this process's, a view. Both throw ValueError, which begins
// with `who`, where the parts would not be equal, and DistributedError where the group is null.
int64_t part_size(const char* who, const Tensor& x, int64_t dim, const distributed::Group& group);
Tensor own_part(const char* who, const Tensor& x, int64_t dim, const distributed::Group& group);

}  // namespace detail

}  // namespace rush::nn::parallel
