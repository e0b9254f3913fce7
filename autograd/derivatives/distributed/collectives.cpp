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

struct AllGatherBackward final : Node {
  int64_t size = 0;
  std::string group;
  void save(const Tensor&, int64_t group_size, std::string_view group_name) {
    size = group_size;
    group = group_name;
  }
  Tensors apply(const Tensors& g) override { return {ops::reduce_scatter_tensor(g[0], "sum", size, group)}; }
};

// What the sums of two operators below are divided by. Throws NotImplementedError for other reductions.
int64_t divisor_of(const char* op, std::string_view reduction, int64_t size) {
  RUSH_CHECK_NOT_IMPLEMENTED(reduction == "sum" || reduction == "avg", op,
                             ": there is a derivative for sum and avg, and "
                             "none for ",
                             std::string(reduction));
  return reduction == "avg" ? size : 1;
}

struct ReduceScatterBackward final : Node {
  int64_t size = 0, divisor = 1;
  std::string group;
  void save(const Tensor&, std::string_view op, int64_t group_size, std::string_view group_name) {
    size = group_size;
    divisor = divisor_of("reduce_scatter_tensor", op, size);
    group = group_name;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = ops::all_gather_into_tensor(g[0], size, group);
    return {divisor == 1 ? grad : grad / divisor};
  }
};

struct AllToAllBackward final : Node {
  DimVector output_splits, input_splits;
  std::string group;
  void save(const Tensor&, IntArrayRef output, IntArrayRef input, std::string_view group_name) {
    output_splits = output;
    input_splits = input;
    group = group_name;
  }
  Tensors apply(const Tensors& g) override {
    return {ops::all_to_all_single(g[0], input_splits, output_splits, group)};
  }
};

struct BroadcastBackward final : Node {
  int64_t source = 0;
  std::string group;
  void save(const Tensor&, int64_t src, std::string_view group_name) {
    source = src;
    group = group_name;
  }
  Tensors apply(const Tensors& g) override { return {ops::reduce_to(g[0], "sum", source, group)}; }
};

struct ReduceToBackward final : Node {
  int64_t destination = 0, divisor = 1;
  std::string group;
  void save(const Tensor&, std::string_view op, int64_t dst, std::string_view group_name) {
    destination = dst;
    divisor = divisor_of("reduce_to", op, group_named(group_name)->size());
    group = group_name;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = ops::broadcast(g[0], destination, group);
    return {divisor == 1 ? grad : grad / divisor};
  }
};

// Zeros that depend on a tensor without rows: second derivatives come to its collective on every process.
Tensor zeros_after(const Tensor& no_rows, IntArrayRef sizes) { return no_rows.sum().expand(sizes); }

struct GatherToBackward final : Node {
  int64_t destination = 0;
  std::string group;
  SavedSizes sizes;
  void save(const Tensor& input, int64_t dst, std::string_view group_name) {
    destination = dst;
    group = group_name;
    sizes = input;
    sizes[0] *= group_named(group)->size();
  }
  Tensors apply(const Tensors& g) override {
    const bool is_root = group_named(group)->rank() == destination;
    const Tensor grad = is_root ? g[0] : zeros_after(g[0], sizes);  // the others' is not read
    return {ops::scatter_from(grad, destination, group)};
  }
};

struct ScatterFromBackward final : Node {
  int64_t source = 0;
  std::string group;
  SavedSizes sizes;
  void save(const Tensor& input, int64_t src, std::string_view group_name) {
    source = src;
    group = group_name;
    sizes = input;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = ops::gather_to(g[0], source, group);
    return {group_named(group)->rank() == source ? grad : zeros_after(grad, sizes)};
  }
};

}  // namespace

void register_collective_derivatives(Registry& r) {
  derive<ops::all_reduce, AllReduceBackward>(r);
  derive<ops::all_gather_into_tensor, AllGatherBackward>(r);
  derive<ops::reduce_scatter_tensor, ReduceScatterBackward>(r);
  derive<ops::all_to_all_single, AllToAllBackward>(r);
  derive<ops::broadcast, BroadcastBackward>(r);
  derive<ops::reduce_to, ReduceToBackward>(r);
  derive<ops::gather_to, GatherToBackward>(r);
  derive<ops::scatter_from, ScatterFromBackward>(r);
}

}  // namespace rush
