// Derivatives of the collectives that return new tensors, against one process that holds what all have.
#include <doctest/doctest.h>

#include "autograd/compile/compile.h"
#include "autograd/engine.h"
#include "core/distributed/functional.h"
#include "tests/distributed/rank_inputs.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using namespace rush::testing;

constexpr int64_t kRows = 3;

// Of one process: a tensor with rows for each process, no two of whose numbers are equal, some negative.
Tensor input_of_rank(int64_t rank) {
  const int64_t numel = get_world_size() * kRows * 2;
  return arange(numel, kFloat64).mul(0.37).sub(0.9 + 0.61 * static_cast<double>(rank)).sin().view({numel / 2, 2});
}

// Gives every element of a result another weight in the loss. The input is in it, too, since not every result depends
// on that of its process.
Tensor loss_of(const Tensor& result, const Tensor& input, int64_t rank) {
  const Tensor weights = arange(result.numel(), kFloat64).mul(0.7).add(static_cast<double>(rank)).cos();
  return (result.square() * weights.view(result.sizes())).sum() + input.square().sum();
}

// `collective` makes one process's result; `reference` that of process `rank` from the inputs of all.
template <class Collective, class Reference>
void check(const Collective& collective, const Reference& reference) {
  const int size = get_world_size();
  std::vector<Tensor> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(input_of_rank(rank).requires_grad_());
  Tensor loss = zeros({}, kFloat64);
  for (int rank = 0; rank < size; ++rank)
    loss = loss + loss_of(reference(inputs, rank), inputs[static_cast<size_t>(rank)], rank);
  const auto mine = static_cast<size_t>(get_rank());
  const Tensors expected = autograd::grad({loss}, inputs, {}, {}, /*create_graph=*/true);
  Tensor second_loss = zeros({}, kFloat64);
  for (const Tensor& each : expected) second_loss = second_loss + each.square().sum();
  const Tensor expected_second = autograd::grad({second_loss}, {inputs[mine]})[0];

  const Tensor input = input_of_rank(get_rank()).requires_grad_();
  const Tensor result = collective(input);
  CHECK(allclose(result, reference(inputs, get_rank()), 1e-12, 1e-12));
  const Tensor grad = autograd::grad({loss_of(result, input, get_rank())}, {input}, {}, {}, /*create_graph=*/true)[0];
  CHECK(allclose(grad, expected[mine], 1e-12, 1e-12));
  // Each process adds the squares of its own gradient: the sum over all has the same derivative as there.
  CHECK(allclose(autograd::grad({grad.square().sum()}, {input})[0], expected_second, 1e-11, 1e-11));
}

Tensor block(const Tensor& t, int64_t rank) { return t.narrow(0, rank * kRows, kRows); }

TEST_CASE("all_reduce") {
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX}) {
    INFO(name(op));
    check([&](const Tensor& x) { return functional::all_reduce(x, op); },
          [&](const std::vector<Tensor>& all, int64_t) {
            const Tensor stacked = stack(all, 0);
            if (op == ReduceOp::PRODUCT) return stacked.prod(0);
            if (op == ReduceOp::MIN) return stacked.amin({0});
            if (op == ReduceOp::MAX) return stacked.amax({0});
            return op == ReduceOp::AVG ? stacked.mean({0}) : stacked.sum({0});
          });
  }
}

TEST_CASE("all_gather") {
  check([](const Tensor& x) { return functional::all_gather(x); },
        [](const std::vector<Tensor>& all, int64_t) { return cat(all, 0); });
}

TEST_CASE("reduce_scatter") {
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::AVG}) {
    check([&](const Tensor& x) { return functional::reduce_scatter(x, op); },
          [&](const std::vector<Tensor>& all, int64_t rank) {
            const Tensor stacked = stack(all, 0);
            return block(op == ReduceOp::AVG ? stacked.mean({0}) : stacked.sum({0}), rank);
          });
  }
}

TEST_CASE("all_to_all, with equal splits and with others") {
  const int size = get_world_size();
  check([](const Tensor& x) { return functional::all_to_all(x); },
        [&](const std::vector<Tensor>& all, int64_t rank) {
          std::vector<Tensor> blocks;
          for (const Tensor& each : all) blocks.push_back(block(each, rank));
          return cat(blocks, 0);
        });
  // The first process gets nothing of anyone, the last gets what was the first's.
  std::vector<int64_t> leaving(static_cast<size_t>(size), kRows);
  leaving.back() += std::exchange(leaving.front(), 0);
  const std::vector<int64_t> arriving(static_cast<size_t>(size), leaving[static_cast<size_t>(get_rank())]);
  check([&](const Tensor& x) { return functional::all_to_all(x, arriving, leaving); },
        [&](const std::vector<Tensor>& all, int64_t rank) {
          const int64_t start = rank == 0 ? 0 : (rank - 1) * kRows;
          std::vector<Tensor> blocks;
          for (const Tensor& each : all) blocks.push_back(each.narrow(0, start, leaving[static_cast<size_t>(rank)]));
          return cat(blocks, 0);
        });
}

TEST_CASE("broadcast and reduce") {
  const int root = get_world_size() - 1;
  check([&](const Tensor& x) { return functional::broadcast(x, root); },
        [&](const std::vector<Tensor>& all, int64_t) { return all[static_cast<size_t>(root)]; });
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::AVG}) {
    check([&](const Tensor& x) { return functional::reduce(x, root, op); },
          [&](const std::vector<Tensor>& all, int64_t rank) {
            const Tensor stacked = stack(all, 0);
            return (op == ReduceOp::AVG ? stacked.mean({0}) : stacked.sum({0})) * (rank == root ? 1.0 : 0.0);
          });
  }
}

TEST_CASE("gather and scatter") {
  const int root = get_world_size() - 1;
  check([&](const Tensor& x) { return functional::gather(x, root); },
        [&](const std::vector<Tensor>& all, int64_t rank) {
          return rank == root ? cat(all, 0) : all[static_cast<size_t>(rank)].narrow(0, 0, 0);
        });
  check([&](const Tensor& x) { return functional::scatter(x, root); },
        [&](const std::vector<Tensor>& all, int64_t rank) { return block(all[static_cast<size_t>(root)], rank); });
}

TEST_CASE("of equal maxima each has its share of the gradient") {
  const Tensor input = ones({2}).requires_grad_();
  functional::all_reduce(input, ReduceOp::MAX).sum().backward();
  CHECK(input.grad().eq(1).all().item<bool>());  // all losses' gradient, shared by all processes
}

TEST_CASE("a compiled function has collectives among its calls, and in its backward pass") {
  const auto function = [](const Tensor& x) { return functional::all_reduce((x * 2).tanh()).exp().sum(); };
  auto compiled = rush::compile(function);
  for (int round = 0; round < 3; ++round) {
    const Tensor x = input_of_rank(get_rank() + round).requires_grad_(), y = x.detach().clone().requires_grad_();
    const Tensor expected = function(x), result = compiled(y);
    CHECK(allclose(result, expected, 1e-12, 1e-12));
    expected.backward();
    result.backward();
    CHECK(allclose(y.grad(), x.grad(), 1e-12, 1e-12));
  }
}

TEST_CASE("reductions without a derivative say so") {
  const Tensor input = input_of_rank(0).requires_grad_();
  CHECK_THROWS_WITH_AS(functional::reduce_scatter(input, ReduceOp::MAX), doctest::Contains("there is a derivative for"),
                       NotImplementedError);
}

}  // namespace
