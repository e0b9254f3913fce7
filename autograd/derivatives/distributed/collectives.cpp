// Derivatives of collectives: see Note [Derivatives of collectives].
#include "autograd/derivatives/register.h"
#include "core/distributed/functional.h"
#include "core/ops/basic.h"

namespace rush {

namespace {

using distributed::Group;
using distributed::group_named;
using distributed::ReduceOp;

Tensor summed(const Tensor& grad, const std::string& group) { return ops::all_reduce(grad, "sum", group); }

// The product of the inputs of all other processes.
Tensor product_of_others(const Tensor& input, const Group& group) {
  Tensor all = ops::all_gather_into_tensor(input.unsqueeze(0), group->size(), group->name());
  const int64_t rank = group->rank();
  return cat({all.narrow(0, 0, rank), all.narrow(0, rank + 1, group->size() - 1 - rank)}, 0).prod(0);
}

struct AllReduceBackward final : Node {
  ReduceOp op = ReduceOp::SUM;
  std::string group;
  Saved input, result;
  RUSH_SAVED(input, result)
  void save(const Tensor& t, std::string_view op_name, std::string_view group_name) {
    op = distributed::reduce_op_named(op_name);
    group = group_name;
    if (op != ReduceOp::SUM && op != ReduceOp::AVG) input = t;
  }
  void save_output(const Tensor& t) {
    if (op == ReduceOp::MIN || op == ReduceOp::MAX) result = Saved::output(t, this);
  }
  Tensors apply(const Tensors& g) override {
    if (op == ReduceOp::AVG) return {ops::all_reduce(g[0], "avg", group)};
    const Tensor total = summed(g[0], group);
    if (op == ReduceOp::SUM) return {total};
    if (op == ReduceOp::PRODUCT) return {total * product_of_others(input.get(), group_named(group)).conj()};
    const Tensor is_extreme = input.get().eq(result.get()).to(total.scalar_type());
    return {total * is_extreme / summed(is_extreme, group)};
  }
};

struct AllToAllBackward final : Node {
  DimVector output_splits, input_splits;
  std::string group;
  auto saved_arguments() { return std::tie(std::ignore, output_splits, input_splits, group); }
  Tensors apply(const Tensors& g) override {
    return {ops::all_to_all_single(g[0], input_splits, output_splits, group)};
  }
};

// Of a collective (input, number, group): the number is a rank, or how many processes there are.
struct CollectiveBackward : Node {
  int64_t number = 0;
  std::string group;
  auto saved_arguments() { return std::tie(std::ignore, number, group); }
};

struct AllGatherBackward final : CollectiveBackward {
  Tensors apply(const Tensors& g) override { return {ops::reduce_scatter_tensor(g[0], "sum", number, group)}; }
};

struct BroadcastBackward final : CollectiveBackward {
  Tensors apply(const Tensors& g) override { return {ops::reduce_to(g[0], "sum", number, group)}; }
};

// Of a collective (input, reduction, number, group).
struct ReductionBackward : Node {
  std::string reduction, group;
  int64_t number = 0;
  void save(const Tensor&, std::string_view op, int64_t n, std::string_view group_name) {
    RUSH_CHECK_NOT_IMPLEMENTED(op == "sum" || op == "avg", name(), ": there is a derivative for sum and avg, and ",
                               "none for ", std::string(op));
    reduction = op;
    number = n;
    group = group_name;
  }
  // Of an element of the result, from what it is for a sum.
  Tensor scaled(const Tensor& grad) const { return reduction == "avg" ? grad / group_named(group)->size() : grad; }
};

struct ReduceScatterBackward final : ReductionBackward {
  Tensors apply(const Tensors& g) override { return {scaled(ops::all_gather_into_tensor(g[0], number, group))}; }
};

struct ReduceToBackward final : ReductionBackward {
  Tensors apply(const Tensors& g) override { return {scaled(ops::broadcast(g[0], number, group))}; }
};

}  // namespace

void register_collective_derivatives(Registry& r) {
  derive<ops::all_reduce, AllReduceBackward>(r);
  derive<ops::all_gather_into_tensor, AllGatherBackward>(r);
  derive<ops::reduce_scatter_tensor, ReduceScatterBackward>(r);
  derive<ops::all_to_all_single, AllToAllBackward>(r);
  derive<ops::broadcast, BroadcastBackward>(r);
  derive<ops::reduce_to, ReduceToBackward>(r);
}

}  // namespace rush
