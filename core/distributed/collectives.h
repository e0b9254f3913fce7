// Collectives in place, by torch.distributed's names: what processes of a group tell each other, see Note
// [Collectives].
#pragma once
#include <string>
#include <vector>

#include "core/distributed/init.h"

namespace rush::distributed {

// Every process of the group calls the same function with tensors of the same shapes and dtypes; ranks are those among
// all processes. Any strides and any device will do: what the group cannot read is copied. The tensors are written past
// autograd; core/distributed/functional.h has the functions with derivatives.
//
// With `async_op` a function returns while the collective goes on, and Work::wait() ends it; otherwise it is done.
//
// All throw DistributedError where `group` is null (this process is no member) or the group has ended, TypeError for
// undefined and sparse tensors and for dtypes that do not agree, and ValueError for shapes that do not.

/// `tensor` becomes, on every process, the sum (or what `op` says) of what it is on each. The elements of the processes
/// are added in the order of ranks, in float32 where they have 16 or 8 bits: Note [Sums in the order of ranks].
WorkPtr all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::SUM, const Group& group = world(),
                   bool async_op = false);
/// The same for several tensors of one dtype, in one collective.
WorkPtr all_reduce_coalesced(TensorList tensors, ReduceOp op = ReduceOp::SUM, const Group& group = world(),
                             bool async_op = false);
/// `tensor` becomes the sum (or what `op` says) on process `dst`; on the others it is unchanged.
WorkPtr reduce(const Tensor& tensor, int dst, ReduceOp op = ReduceOp::SUM, const Group& group = world(),
               bool async_op = false);
/// `tensor` becomes what it is on process `src`.
WorkPtr broadcast(const Tensor& tensor, int src, const Group& group = world(), bool async_op = false);
/// `outputs[i]` becomes what `input` is on member i. All have the input's shape.
WorkPtr all_gather(TensorList outputs, const Tensor& input, const Group& group = world(), bool async_op = false);
/// The same into one tensor, of as many elements as the inputs have together: block after block.
WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, const Group& group = world(),
                               bool async_op = false);
/// On process `dst`, `outputs[i]` becomes what `input` is on member i. On the others `outputs` is empty.
WorkPtr gather(const Tensor& input, TensorList outputs, int dst, const Group& group = world(), bool async_op = false);
/// `output` on member i becomes `inputs[i]` of process `src`. On the others `inputs` is empty.
WorkPtr scatter(const Tensor& output, TensorList inputs, int src, const Group& group = world(), bool async_op = false);
/// `output` on member i becomes the sum (or what `op` says) of all processes' `inputs[i]`.
WorkPtr reduce_scatter(const Tensor& output, TensorList inputs, ReduceOp op = ReduceOp::SUM,
                       const Group& group = world(), bool async_op = false);
/// The same from one tensor, of as many elements as the outputs have together.
WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::SUM,
                              const Group& group = world(), bool async_op = false);
/// `outputs[i]` becomes what `inputs[this process's rank]` is on member i. Their shapes may differ.
WorkPtr all_to_all(TensorList outputs, TensorList inputs, const Group& group = world(), bool async_op = false);
/// The same with rows: member i gets `input_splits[i]` rows of the input, and `output_splits[i]` of the output come
/// from it. Without splits all are equal.
WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, IntArrayRef output_splits = {},
                          IntArrayRef input_splits = {}, const Group& group = world(), bool async_op = false);

/// Sends to process `dst`, which calls recv with a tensor of the same size and the same tag.
void send(const Tensor& tensor, int dst, const Group& group = world(), int tag = 0);
/// Receives from process `src`.
void recv(const Tensor& tensor, int src, const Group& group = world(), int tag = 0);
/// The same, of which Work::wait() is the end. Several may be under way: they begin in the order of the calls.
WorkPtr isend(const Tensor& tensor, int dst, const Group& group = world(), int tag = 0);
WorkPtr irecv(const Tensor& tensor, int src, const Group& group = world(), int tag = 0);  // see isend

/// Returns when every process of the group has called it.
WorkPtr barrier(const Group& group = world(), bool async_op = false);

/// What each member says, texts of any length, in the order of the members. torch.distributed.all_gather_object.
std::vector<std::string> all_gather_texts(const std::string& own, const Group& group = world());

namespace detail {
/// gather and scatter as an all_to_all: how much this process exchanges with all, which is nothing unless it is the
/// root, and with the root alone.
struct RootSplits {
  RootSplits(const ProcessGroup& group, int root, int64_t block)
      : with_all(group.ranks().size(), group.rank() == root ? block : 0), with_root(group.ranks().size()) {
    with_root[static_cast<size_t>(root)] = block;
  }
  std::vector<int64_t> with_all, with_root;
};
}  // namespace detail

}  // namespace rush::distributed
