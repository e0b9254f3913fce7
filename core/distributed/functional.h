// Collectives as operators: they return new tensors, and have derivatives.
#pragma once
#include <string_view>

#include "core/dispatch/op.h"
#include "core/distributed/process_group.h"

namespace rush {

// The names and schemas are those of torch.ops._c10d_functional; ATen has none for the last. Ranks are those of
// the group. The result is there when a call returns, so there is nothing like wait_tensor.
namespace ops {
inline constinit Op<Tensor(const Tensor&, std::string_view, std::string_view)> all_reduce{
    "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor", {Tag::Collective}};
inline constinit Op<Tensor(const Tensor&, int64_t, std::string_view)> all_gather_into_tensor{
    "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
    {Tag::Collective}};
inline constinit Op<Tensor(const Tensor&, std::string_view, int64_t, std::string_view)> reduce_scatter_tensor{
    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
    {Tag::Collective}};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, std::string_view)> all_to_all_single{
    "_c10d_functional::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str "
    "group_name) -> Tensor",
    {Tag::Collective}};
inline constinit Op<Tensor(const Tensor&, int64_t, std::string_view)> broadcast{
    "_c10d_functional::broadcast(Tensor input, int src, str group_name) -> Tensor", {Tag::Collective}};
inline constinit Op<Tensor(const Tensor&, std::string_view, int64_t, std::string_view)> reduce_to{
    "rush::reduce_to(Tensor input, str reduce_op, int dst, str group_name) -> Tensor", {Tag::Collective}};
}  // namespace ops

class Registry;

namespace distributed {

void register_collectives(Registry& registry);  // the operators above

// Note [Derivatives of collectives]
// A result that is on every process serves the losses of all of them, so a gradient is that of the sum of all
// processes' losses: the derivative of all_gather adds the blocks' gradients up (reduce_scatter), that of broadcast
// reduces to the source. The derivative is a collective in turn, which every process must come to: so each has a loss
// that depends on its result, and all call backward.
namespace functional {

/// The sum (or what `op` says) of the inputs of all processes, on each. Of a minimum or a maximum the gradient goes to
/// the elements that are it, in equal shares.
Tensor all_reduce(const Tensor& input, ReduceOp op = ReduceOp::SUM, const Group& group = world());
/// (N, ...) -> (processes * N, ...): the inputs of all, one below the other.
Tensor all_gather(const Tensor& input, const Group& group = world());
/// (processes * N, ...) -> (N, ...): member i has the sum (or what `op` says) of all processes' i-th block of rows.
Tensor reduce_scatter(const Tensor& input, ReduceOp op = ReduceOp::SUM, const Group& group = world());
/// Member i gets `input_splits[i]` rows of the input; `output_splits[i]` rows of the result come from it. Without
/// splits all are equal.
Tensor all_to_all(const Tensor& input, IntArrayRef output_splits = {}, IntArrayRef input_splits = {},
                  const Group& group = world());
/// The input of process `src`, on all. Every process gives one of that shape.
Tensor broadcast(const Tensor& input, int src, const Group& group = world());
/// The sum (or what `op` says) on process `dst`, zeros on the others.
Tensor reduce(const Tensor& input, int dst, ReduceOp op = ReduceOp::SUM, const Group& group = world());
/// (N, ...) -> (processes * N, ...) on process `dst`, and no rows on the others.
Tensor gather(const Tensor& input, int dst, const Group& group = world());
/// (processes * N, ...) -> (N, ...): the block of rows that process `src` has for this one. Every process gives an
/// input of that shape.
Tensor scatter(const Tensor& input, int src, const Group& group = world());

}  // namespace functional
}  // namespace distributed
}  // namespace rush
