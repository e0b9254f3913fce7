// SemiStructuredLinear against the Linear that it was made from.
#include <sstream>

#include "tests/ops/sparse/semi_structured_testing.h"
#include "tests/temporary_folder.h"

using namespace rush;
using namespace rush::testing;

namespace {

nn::Linear pruned_linear(int64_t in, int64_t out, ScalarType dtype = kFloat16, bool bias = true) {
  nn::Linear linear(nn::LinearOptions(in, out).bias(bias));
  linear->to(dtype);
  linear->weight.set_data(sparse::prune_semi_structured(linear->weight.detach()));
  return linear;
}

Tensor by_definition(const nn::Linear& linear, const Tensor& x) {
  return product_by_definition(linear->weight, x.t(), linear->bias).t();
}

}  // namespace

TEST_CASE("a linear layer with a compressed weight gives what the dense one gives") {
  manual_seed(7);
  for (const bool with_bias : {true, false}) {
    const nn::Linear linear = pruned_linear(64, 32, kFloat16, with_bias);
    nn::SemiStructuredLinear fast(linear);
    const Tensor x = uneven(5, 64, kFloat16);
    CHECK(is_rounded(fast(x), by_definition(linear, x)));
    CHECK(equal(fast->dense_weight(), linear->weight));
    CHECK(fast->parameters().size() == (with_bias ? 1 : 0));
    CHECK(fast->buffers().size() == 1);
    CHECK(fast->packed.nbytes() * 8 == linear->weight.nbytes() * 5);
  }
  std::ostringstream printed;
  printed << nn::SemiStructuredLinear(pruned_linear(64, 32));
  CHECK(printed.str() == "rush::nn::SemiStructuredLinear(in_features=64, out_features=32, bias=true, float16)");
  CHECK_THROWS_AS(nn::SemiStructuredLinear(nn::Linear(64, 32)), ValueError);  // not pruned
  CHECK_THROWS_AS(nn::SemiStructuredLinear(pruned_linear(64, 40)), ValueError);
}

TEST_CASE("input and bias of a layer with a compressed weight have gradients") {
  manual_seed(7);
  const nn::Linear linear = pruned_linear(32, 16, kFloat64);
  nn::SemiStructuredLinear fast(linear);
  const Tensor x = leaf({3, 32}), y = x.detach().clone().requires_grad_();
  linear(x).sin().sum().backward();
  fast(y).sin().sum().backward();
  CHECK(allclose(x.grad(), y.grad(), 1e-12, 1e-12));
  CHECK(allclose(linear->bias.grad(), fast->bias.grad(), 1e-12, 1e-12));
}

TEST_CASE("a layer with a compressed weight is saved, loaded and cloned, and converted it is refused") {
  manual_seed(7);
  const nn::Linear linear = pruned_linear(32, 16), other = pruned_linear(32, 16);
  nn::SemiStructuredLinear fast(linear), loaded(other);
  const Tensor x = uneven(4, 32, kFloat16);
  const auto copy = std::dynamic_pointer_cast<nn::SemiStructuredLinearImpl>(fast->clone());
  REQUIRE(copy);
  CHECK(equal(copy->forward(x), fast(x)));
  CHECK_FALSE(copy->packed.is_alias_of(fast->packed));
  CHECK_FALSE(copy->bias.is_alias_of(fast->bias));
  CHECK(copy->bias.requires_grad());
  const TemporaryFolder folder;
  const std::string path = folder / "layer.safetensors";
  CHECK_FALSE(equal(loaded(x), fast(x)));
  save(fast, path);
  load(loaded, path);
  CHECK(equal(loaded(x), fast(x)));
  // Bits of bfloat16 do not become float16's.
  nn::SemiStructuredLinear brain(pruned_linear(32, 16, kBFloat16));
  CHECK_THROWS_AS(load(brain, path), ValueError);
  const Tensor before = fast(x);
  fast->to(kFloat32);
  CHECK(fast->packed.scalar_type() == kInt16);
  CHECK_THROWS_AS(fast(x), TypeError);
  CHECK_THROWS_AS(fast(x.to(kFloat32)), TypeError);
  fast->to(kFloat16);
  CHECK(equal(fast(x), before));
}
