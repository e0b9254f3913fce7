// Random programs, compiled and as they stand: element-wise operators, views, writes in place, reductions, products and
// their derivatives. RUSH_COMPILE_PROGRAMS=N runs N of them instead of 150; on a GPU, whose loops are compiled, of 15.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "rushlight.h"

using namespace rush;

namespace {

constexpr int64_t kRows = 5, kColumns = 67;

// One program: the same operators each time that it is run, chosen by the seed.
class Program {
 public:
  explicit Program(unsigned seed) : seed_(seed) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    random_.seed(seed_);
    tensors_ = inputs;
    const int operators = 3 + pick(58);
    for (int i = 0; i < operators; ++i) add();
    std::vector<Tensor> outputs;
    for (int i = 0; i < 3; ++i) outputs.push_back(any());
    if (outputs[0].requires_grad()) {
      for (const Tensor& grad : autograd::grad({outputs[0].sum()}, inputs, {}, std::nullopt, false, true)) {
        if (grad.defined()) outputs.push_back(grad);
      }
    }
    for (Tensor& output : outputs) output = output.detach();
    tensors_.clear();
    return outputs;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  const Tensor& any() { return tensors_[static_cast<size_t>(pick(static_cast<int>(tensors_.size())))]; }
  // Bounded, so that no program overflows: what is equal must not be NaN.
  void keep(const Tensor& t) { tensors_.push_back(t.expand({kRows, kColumns}).clamp(-3, 3)); }

  void add() {
    const Tensor a = any(), b = any();
    switch (pick(24)) {
      case 0: return keep(a + b);
      case 1: return keep(a - b * 0.5);
      case 2: return keep(a * b);
      case 3: return keep(a / (b.abs() + 1));
      case 4: return keep(a.sigmoid());
      case 5: return keep(a.tanh());
      case 6: return keep(nn::functional::gelu(a));
      case 7: return keep(where(a > b, a, b.exp()));
      case 8: return keep(a.relu());
      case 9: return keep(a.sum(1, true) * 0.01);
      case 10: return keep(a.mean(0, true));
      case 11: return keep(softmax(a, 1));
      case 12: return keep(a.matmul(b.t()).matmul(a) * 0.01);
      case 13: return keep(a.t().contiguous().t());
      case 14: return keep(cat({a.slice(1, 0, 30), b.slice(1, 30)}, 1));
      case 15: return keep(a.select(0, 2).unsqueeze(0));
      case 16: return keep(a.to(kFloat64).sin().to(kFloat32));
      case 17: return keep(a.to(kBFloat16).mul(b.to(kBFloat16)).to(kFloat32));
      case 18: {
        Tensor c = a.clone();
        c.mul_(0.5).add_(b);
        return keep(c);
      }
      case 19: {
        Tensor c = a * 1.5;
        c.slice(1, 3, 20).copy_(b.slice(1, 3, 20).cos());
        return keep(c);
      }
      case 20: return keep(a.contiguous().view({kColumns, kRows}).t().contiguous().pow(2) * 0.1);
      case 21: return keep((a - b.amax({1}, true)).exp());
      case 22: return keep(a * ((a * b).mean({1}, true).abs() + 1).rsqrt());
      default: return keep(maximum(a, b) + minimum(a, b).floor());
    }
  }

  unsigned seed_;
  std::mt19937 random_;
  std::vector<Tensor> tensors_;
};

}  // namespace

TEST_CASE("random programs give the same bits compiled") {
  const char* wanted = std::getenv("RUSH_COMPILE_PROGRAMS");
  const int programs = wanted ? std::atoi(wanted) : zeros({1}).is_cpu() ? 150 : 15;
  size_t fused = 0;
  for (int seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    manual_seed(static_cast<uint64_t>(seed));
    Program program(static_cast<unsigned>(seed));
    compiler::CompiledFunction compiled({});
    const bool differentiated = seed % 2 == 0;
    for (int call = 0; call < 3; ++call) {
      std::vector<Tensor> inputs{randn({kRows, kColumns}), randn({kColumns, kRows}).t(), randn({kRows, kColumns})};
      for (Tensor& input : inputs) input.requires_grad_(differentiated);
      const std::vector<Tensor> expected = program.run(inputs);
      const std::vector<Tensor> actual =
          compiled.call([&](const std::vector<Tensor>& given) { return program.run(given); }, inputs);
      REQUIRE(actual.size() == expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        CAPTURE(i);
        REQUIRE(actual[i].equal(expected[i]));
      }
    }
    REQUIRE(compiled.compilations() == 1);
    for (const Graph::Call& call : compiled.graph(0).calls) fused += call.fused ? 1 : 0;
  }
  CHECK(fused > static_cast<size_t>(programs));
}
