#include "core/distributed/functional.h"

#include <numeric>

#include "core/dispatch/registry.h"
#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace distributed {

namespace {

int64_t rows_of(const char* who, const Tensor& input) {
  RUSH_CHECK_VALUE(input.dim() > 0, who, ": expected an input with rows, got one without a dimension");
  return input.size(0);
}

Tensor with_rows(const Tensor& like, int64_t rows) {
  DimVector sizes(like.sizes());
  sizes[0] = rows;
  return empty(sizes, like.options());
}

// Of each process's block.
int64_t block_rows(const char* who, const Tensor& input, const Group& group) {
  const int64_t rows = rows_of(who, input);
  RUSH_CHECK_VALUE(rows % group->size() == 0, who, ": ", rows, " rows cannot be split among ", group->size(),
                   " processes");
  return rows / group->size();
}

int global_rank(const Group& group, int64_t rank) {
  RUSH_CHECK_VALUE(rank >= 0 && rank < group->size(), "expected a rank from 0 to ", group->size() - 1, ", got ", rank);
  return group->ranks()[static_cast<size_t>(rank)];
}

void check_size(const char* who, const Group& group, int64_t size) {
  RUSH_CHECK_VALUE(group->size() == size, who, ": the group '", group->name(), "' has ", group->size(),
                   " processes, not ", size);
}

Tensor contiguous_copy(const Tensor& input) { return input.clone(MemoryFormat::Contiguous); }

Tensor all_reduce_front(const Tensor& input, std::string_view op, std::string_view group_name) {
  Tensor result = contiguous_copy(input);
  all_reduce(result, reduce_op_named(op), group_named(group_name));
  return result;
}

Tensor all_gather_front(const Tensor& input, int64_t group_size, std::string_view group_name) {
  const Group group = group_named(group_name);
  check_size("all_gather_into_tensor", group, group_size);
  Tensor result =
      with_rows(input, multiply_sizes("all_gather_into_tensor", rows_of("all_gather_into_tensor", input), group_size));
  all_gather_into_tensor(result, input, group);
  return result;
}

Tensor reduce_scatter_front(const Tensor& input, std::string_view op, int64_t group_size, std::string_view group_name) {
  const Group group = group_named(group_name);
  check_size("reduce_scatter_tensor", group, group_size);
  Tensor result = with_rows(input, block_rows("reduce_scatter_tensor", input, group));
  reduce_scatter_tensor(result, input, reduce_op_named(op), group);
  return result;
}

Tensor all_to_all_front(const Tensor& input, IntArrayRef output_splits, IntArrayRef input_splits,
                        std::string_view group_name) {
  int64_t rows = rows_of("all_to_all_single", input);
  if (!output_splits.empty()) rows = std::accumulate(output_splits.begin(), output_splits.end(), int64_t{0});
  Tensor result = with_rows(input, rows);
  all_to_all_single(result, input, output_splits, input_splits, group_named(group_name));
  return result;
}

Tensor broadcast_front(const Tensor& input, int64_t src, std::string_view group_name) {
  const Group group = group_named(group_name);
  Tensor result = contiguous_copy(input);
  broadcast(result, global_rank(group, src), group);
  return result;
}

Tensor reduce_front(const Tensor& input, std::string_view op, int64_t dst, std::string_view group_name) {
  const Group group = group_named(group_name);
  Tensor result = contiguous_copy(input);
  reduce(result, global_rank(group, dst), reduce_op_named(op), group);
  if (group->rank() != dst) result.zero_();
  return result;
}

// The name by which an operator finds the group.
const std::string& name_of(const char* who, const Group& group) {
  detail::check_member(who, group);
  return group->name();
}

}  // namespace

namespace functional {

Tensor all_reduce(const Tensor& input, ReduceOp op, const Group& group) {
  return ops::all_reduce(input, name(op), name_of("all_reduce", group));
}
Tensor all_gather(const Tensor& input, const Group& group) {
  return ops::all_gather_into_tensor(input, get_world_size(group), name_of("all_gather", group));
}
Tensor reduce_scatter(const Tensor& input, ReduceOp op, const Group& group) {
  return ops::reduce_scatter_tensor(input, name(op), get_world_size(group), name_of("reduce_scatter", group));
}
Tensor all_to_all(const Tensor& input, IntArrayRef output_splits, IntArrayRef input_splits, const Group& group) {
  return ops::all_to_all_single(input, output_splits, input_splits, name_of("all_to_all", group));
}
Tensor broadcast(const Tensor& input, int src, const Group& group) {
  const std::string& name = name_of("broadcast", group);
  return ops::broadcast(input, group->rank_of("broadcast", src), name);
}
Tensor reduce(const Tensor& input, int dst, ReduceOp op, const Group& group) {
  const std::string& group_name = name_of("reduce", group);
  return ops::reduce_to(input, name(op), group->rank_of("reduce", dst), group_name);
}
Tensor gather(const Tensor& input, int dst, const Group& group) {
  const std::string& name = name_of("gather", group);
  const detail::RootSplits splits(*group, group->rank_of("gather", dst), rows_of("gather", input));
  return ops::all_to_all_single(input, splits.with_all, splits.with_root, name);
}
Tensor scatter(const Tensor& input, int src, const Group& group) {
  const std::string& name = name_of("scatter", group);
  const int root = group->rank_of("scatter", src);
  const detail::RootSplits splits(*group, root, block_rows("scatter", input, group));
  const Tensor sent = group->rank() == root ? input : input.narrow(0, 0, 0);  // the others' rows go nowhere
  return ops::all_to_all_single(sent, splits.with_root, splits.with_all, name);
}

}  // namespace functional

void register_collectives(Registry& r) {
  r.native(ops::all_reduce, all_reduce_front);
  r.native(ops::all_gather_into_tensor, all_gather_front);
  r.native(ops::reduce_scatter_tensor, reduce_scatter_front);
  r.native(ops::all_to_all_single, all_to_all_front);
  r.native(ops::broadcast, broadcast_front);
  r.native(ops::reduce_to, reduce_front);
}

}  // namespace distributed
}  // namespace rush
