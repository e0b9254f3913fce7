#include "autograd/debug/graphviz.h"

#include <doctest/doctest.h>

#include <any>

#include "rushlight.h"
#include "tests/compute_sanitizer.h"
#include "tests/text.h"

using namespace rush;
using autograd::to_dot;
using rush::testing::contains;
using rush::testing::count;

namespace {

std::string number(const Tensor& t) { return "#" + std::to_string(t.grad_fn()->sequence_nr()); }

}  // namespace

TEST_CASE("nodes, edges, leaves and saved tensors with shapes and versions") {
  const Tensor w = ones({3, 1}, requires_grad()), x = ones({4});
  const Tensor y = w * x;
  const Tensor z = y.exp() + y;
  const std::string dot = to_dot(z);
  CHECK(dot.rfind("digraph backward {\n", 0) == 0);
  CHECK(dot.substr(dot.size() - 2) == "}\n");
  CHECK(contains(dot, "output0 [label=\"output0\\nfloat32 (3, 4)\""));
  CHECK(contains(dot, "label=\"AddBackward " + number(z) + "\""));
  CHECK(contains(dot, "label=\"MulBackward " + number(y) + "\\nother: float32 (4) v0\""));
  CHECK(contains(dot, "\\nresult: float32 (3, 4) v0\""));
  CHECK(contains(dot, "label=\"leaf\\nfloat32 (3, 1) v0\""));
  CHECK(count(dot, " -> ") == 5);  // to add, from it to exp and mul, from exp to mul, from mul to the leaf
  CHECK(contains(dot, "output0 -> node0;"));
  CHECK(count(dot, "salmon") == 0);
}

TEST_CASE("a saved tensor that was written since is marked") {
  const Tensor w = ones({2}, requires_grad()), x = ones({2});
  const Tensor y = w * x;
  x.add_(1);
  CHECK(contains(to_dot(y), "other: float32 (2) v0, now v1\", shape=box, style=filled, fillcolor=salmon"));
}

TEST_CASE("several outputs, numbered outputs of one node, packed and freed tensors") {
  const Tensor x = ones({4}, requires_grad());
  const std::vector<Tensor> halves = x.chunk(2);
  const std::string dot = to_dot({halves[0], halves[1]});
  CHECK(contains(dot, "output1 [label="));
  CHECK(count(dot, "leaf") == 1);
  Tensor e;
  {
    const autograd::SavedTensorsHooks hooks([](const Tensor& t) { return std::any(t); },
                                            [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); });
    e = x.exp();
  }
  CHECK(contains(to_dot(e), "result: packed by hooks"));
  const Tensor sum = e.sum();
  sum.backward();
  CHECK_FALSE(to_dot(sum).find("result") != std::string::npos);
  CHECK_THROWS_AS(to_dot(ones({1})), ValueError);
}

TEST_CASE("a deep graph is drawn without recursion") {
  Tensor y = ones({1}, requires_grad());
  const size_t nodes = testing::length_of_long_chain(100000);
  for (size_t i = 0; i < nodes; ++i) y = y + 1;
  CHECK(count(to_dot(y), " -> ") == nodes + 1);
}
