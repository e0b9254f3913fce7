// What follows concatenated tensors, computed of each part alone: the same bits, and where it must not be.
#include <doctest/doctest.h>

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/compile/compile.h"
#include "autograd/compile/fusion.h"
#include "autograd/compile/graph_module.h"
#include "autograd/compile/passes.h"
#include "rushlight.h"
#include "tests/compile/graph_calls.h"
#include "tests/compile/same_bits.h"

using namespace rush;
using rush::testing::calls_of;

namespace {

struct Left {
  size_t cats, loops, calls;  // of loops' calls, views apart
};

// What the passes leave of a function's calls, which must compute the same.
Left left_of(const compiler::Function& function, const std::vector<Tensor>& inputs) {
  const NoGradGuard no_grad;
  Graph graph = make_fx(function, inputs);
  const std::vector<Tensor> expected = GraphModule(graph)(inputs);
  compiler::split_concatenations(graph);
  CAPTURE(graph.print());
  testing::check_equal(GraphModule(graph)(inputs), expected);
  const size_t cats = calls_of(graph, "aten::cat");
  compiler::fuse_element_wise_calls(graph, 2);
  CAPTURE(graph.print());
  const std::vector<Tensor> got = GraphModule(graph)(inputs);
  testing::check_equal(got, expected);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].strides() == expected[i].strides());
  Left left{cats, 0, 0};
  for (const Graph::Call& call : graph.calls) {
    left.loops += call.fused != nullptr;
    left.calls += call.op && !call.op->is_view() && call.op->name() != "aten::empty_strided";
  }
  return left;
}

Tensor rotated(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const std::vector<Tensor> halves = x.chunk(2, -1);
  return x * cosines + cat({-halves[1], halves[0]}, -1) * sines;
}

}  // namespace

TEST_CASE("rotary embeddings are one loop, forward and backward") {
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(dtype);
    const Tensor x = randn({2, 5, 3, 8}).to(dtype).transpose(1, 2), angles = randn({5, 8});
    const std::vector<Tensor> inputs = {x, angles.cos().to(dtype), angles.sin().to(dtype), randn_like(x)};
    const Left forward =
        left_of([](const std::vector<Tensor>& in) { return std::vector{rotated(in[0], in[1], in[2])}; }, inputs);
    CHECK(forward.cats == 0);
    CHECK(forward.loops == 1);
    CHECK(forward.calls == 0);
    const Left backward = left_of(
        [](const std::vector<Tensor>& in) {
          const Tensor past = in[3] * in[1], through = in[3] * in[2];
          const std::vector<Tensor> halves = through.split(4, -1);
          return std::vector{past + cat({halves[1], halves[0].neg()}, 3)};
        },
        inputs);
    CHECK(backward.cats == 0);
    CHECK(backward.loops == 1);
    CHECK(backward.calls == 0);
  }
}

TEST_CASE("parts may have other sizes, lie anywhere, and several results be made of them") {
  const Tensor a = randn({3, 4, 5}), b = randn({3, 2, 5}), wide = randn({6, 7, 10}), column = randn({3, 1, 1});
  const Left left = left_of(
      [](const std::vector<Tensor>& in) {
        const Tensor part = in[2].slice(0, 0, 6, 2).narrow(1, 3, 3).narrow(2, 2, 5);
        const Tensor all = cat({in[0].exp(), part, in[1]}, -2);
        const Tensor doubled = all * 2;
        const Tensor shifted = doubled + in[3], squares = all.mul(all).relu().transpose(0, 1);
        return std::vector{shifted, doubled.sum(), squares};
      },
      {a, b, wide, column});
  CHECK(left.cats == 0);
  CHECK(left.loops == 3);
  CHECK(left.calls == 1);
}

TEST_CASE("cat stays where the whole is read, or where it could be read too late") {
  const std::vector<Tensor> inputs = {randn({4, 6}), randn({4, 6}), randn({6, 4})};
  const auto cats = [&](const compiler::Function& function) { return left_of(function, inputs).cats; };
  using In = const std::vector<Tensor>&;
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[1]}).mul(2)}; }) == 0);
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[1]})}; }) == 1);                // nothing follows
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[1]}).matmul(in[2])}; }) == 1);  // no element-wise operator
  CHECK(cats([](In in) {
          const Tensor all = cat({in[0], in[1]});
          return std::vector{all.mul(2), all};
        }) == 1);
  CHECK(cats([](In in) {  // a sum of what is made of the whole is read by what follows
          const Tensor doubled = cat({in[0], in[1]}).mul(2);
          return std::vector{doubled - doubled.sum()};
        }) == 0);
  CHECK(cats([](In in) {
          const Tensor doubled = cat({in[0], in[1]}).mul(2), centred = doubled - doubled.sum(0, true);
          return std::vector{centred.mul(doubled)};
        }) == 0);
  CHECK(cats([](In in) {  // a part is written in between
          const Tensor part = in[0] * 1, all = cat({part, in[1]});
          part.add_(1);
          return std::vector{all.mul(2), part};
        }) == 1);
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[1].narrow(0, 0, 1)}).mul(2)}; }) == 1);  // one broadcasts
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[1].to(kFloat64)}).mul(2)}; }) == 1);
  CHECK(cats([](In in) { return std::vector{cat({in[0], in[0], in[1], in[1], in[0]}).mul(2)}; }) == 1);  // many
  CHECK(cats([](In in) {  // the same part twice
          return std::vector{cat({in[0], in[0]}).mul(2)};
        }) == 0);
}

TEST_CASE("loops write parts of one tensor, and not parts that overlap") {
  const auto loops = [](int64_t second) {
    const NoGradGuard no_grad;
    const std::vector<Tensor> inputs = {randn({4, 6}), randn({4, 6})};
    Graph graph = make_fx(
        [&](const std::vector<Tensor>& in) {
          const Tensor all = empty_strided({4, 16}, {16, 1});
          Tensor first = all.narrow(1, 0, 6), last = all.narrow(1, second, 6);
          first.copy_(in[0]);
          last.copy_(in[1]);
          return std::vector{all.narrow(1, 0, second + 6)};
        },
        inputs);
    const std::vector<Tensor> expected = GraphModule(graph)(inputs);
    compiler::fuse_element_wise_calls(graph, 1);
    testing::check_equal(GraphModule(graph)(inputs), expected);
    size_t count = 0;
    for (const Graph::Call& call : graph.calls) count += call.fused != nullptr;
    return count;
  };
  CHECK(loops(6) == 1);
  CHECK(loops(5) == 2);
}
