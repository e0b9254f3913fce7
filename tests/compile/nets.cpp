// rush::compile of whole nets: trainings and forward passes that give what the nets give without, bit for bit.
#include "benchmarks/nets/nets.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;

namespace {

constexpr size_t kCompiledSteps = 5;

// Losses of a few steps, and what they leave in the net.
std::vector<Tensor> train_workload(const std::string& name, bool is_compiled, double memory_budget = 1) {
  manual_seed(3);
  const plain::Workload workload = plain::make_workload(name, plain::Size::Test);
  plain::Training step(workload, /*is_capturable=*/false);
  auto compiled =
      compile([&](const Tensor& x, const Tensor& y) { return step(x, y); }, {.memory_budget = memory_budget});
  std::vector<Tensor> results;
  for (size_t i = 0; i < kCompiledSteps; ++i) {
    const Tensor loss = is_compiled ? compiled(workload.x, workload.y) : step(workload.x, workload.y);
    results.push_back(loss.detach().clone());
  }
  CHECK(compiled.obstacle().empty());
  CHECK(compiled.compilations() == (is_compiled ? 1 : 0));
  for (const auto& tensors : {workload.net->parameters(), workload.net->buffers()})
    results.insert(results.end(), tensors.begin(), tensors.end());
  return results;
}

// On a GPU sums of gradients have no order, and AdamW makes steps of noise where a gradient is zero but for that: there
// losses and outputs are compared. Its fused operators round 16-bit numbers elsewhere than those that they replace.
bool is_same(const Tensor& a, const Tensor& b) {
  const double rounding = b.scalar_type() == kBFloat16 ? 1.0 / 64 : 1e-3;
  return a.device().is_cpu() ? a.equal(b) : a.allclose(b, 2e-2, rounding * b.abs().max().item<double>());
}

}  // namespace

TEST_CASE("nets train as they do without the compiler") {
  globalContext().setDeterministicAlgorithms(true);
  for (const std::string& name : plain::names_of_nets()) {
    CAPTURE(name);
    const std::vector<Tensor> a = train_workload(name, true), b = train_workload(name, false),
                              within_budget = train_workload(name, true, 0);
    REQUIRE(a.size() == b.size());
    const size_t compared = a[0].device().is_cpu() ? a.size() : kCompiledSteps;
    for (size_t i = 0; i < compared; ++i) {
      CAPTURE(i);
      CHECK(is_same(a[i], b[i]));
      CHECK(is_same(within_budget[i], b[i]));
    }
    CHECK(a[0].isfinite().all().item<bool>());
    CHECK_FALSE(a[0].equal(a[kCompiledSteps - 1]));
  }
  globalContext().setDeterministicAlgorithms(false);
}

TEST_CASE("nets infer as they do without the compiler") {
  const NoGradGuard no_grad;
  for (const std::string& name : plain::names_of_nets()) {
    CAPTURE(name);
    plain::Workload workload = plain::make_workload(name, plain::Size::Test);
    plain::prepare_for_inference(workload);
    auto compiled = compile(workload.forward);
    const Tensor expected = workload.forward(workload.x);
    for (int i = 0; i < 2; ++i) CHECK(is_same(compiled(workload.x), expected));
    CHECK(compiled.obstacle().empty());
    CHECK(compiled.compilations() == 1);
  }
}
