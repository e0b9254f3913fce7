// CompileOptions::check, RUSH_COMPILE_DEBUG and RUSH_COMPILE_LOG: what a program does to find a mistake of the
// compiler.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/compile/program.h"
#include "autograd/compile/signature.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a checked program trains as one that is not, and does each thing once") {
  const auto train = [](bool is_checked) {
    manual_seed(1);
    nn::Sequential net(nn::Linear(8, 16), nn::BatchNorm1d(16), nn::GELU(), nn::Dropout(0.3), nn::Linear(16, 3));
    optim::AdamW optimizer(net->parameters(), 1e-2);
    Tensor total = zeros({});
    auto step = compile(
        [&](const Tensor& x) {
          optimizer.zero_grad();
          const Tensor loss = net->forward(x).pow(2).mean();
          loss.backward();
          optimizer.step();
          const NoGradGuard no_grad;
          total.add_(loss);
          x.mul_(2);
          return loss;
        },
        {.check = is_checked});
    std::vector<Tensor> results;
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({6, 8});
      results.push_back(step(x).detach());
      results.push_back(x);
    }
    CHECK(step.compilations() == 1);
    results.push_back(total);
    for (const auto& tensors : {net->parameters(), net->buffers()})
      results.insert(results.end(), tensors.begin(), tensors.end());
    return results;
  };
  const std::vector<Tensor> a = train(true), b = train(false);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].equal(b[i]));
}

// Scores of many classes become their gradient in place, and a mean has tensors that the function's graph has not.
TEST_CASE("a checked loss over many classes is right") {
  manual_seed(2);
  nn::Linear head(8, 5000);
  const Tensor x = randn({6, 8}), target = randint(0, 5000, {6});
  const auto gradient = [&](bool is_checked) {
    auto step = compile(
        [&](const Tensor& in) {
          head->zero_grad();
          const Tensor loss = nn::functional::cross_entropy(head(in), target);
          loss.backward();
          return loss;
        },
        {.check = is_checked});
    Tensor loss;
    for (int call = 0; call < 4; ++call) loss = step(x).detach();
    CHECK(step.compilations() == 1);
    return std::pair(loss, head->weight.grad().clone());
  };
  const auto checked = gradient(true), plain = gradient(false);
  CHECK(checked.first.equal(plain.first));
  CHECK(checked.second.equal(plain.second));
}

TEST_CASE("a checked program names the call, the element and the numbers that differ") {
  const NoGradGuard no_grad;
  const Tensor x = arange(6.0).view({2, 3});
  const auto graph_of = [&](double factor, bool fuse) {
    auto f = compile([=](const Tensor& in) { return (in.add_(1) * factor).relu().matmul(in.t()); }, {.fuse = fuse});
    f(x.clone());
    return f.graph();
  };
  compiler::Program right(graph_of(2, true), graph_of(2, false)), wrong(graph_of(2.5, true), graph_of(2, false));
  const Tensor in = x.clone(), expected = ((x + 1) * 2).relu().matmul((x + 1).t());
  CHECK(right.run({in})[0].equal(expected));
  CHECK(in.equal(x + 1));
  CHECK_THROWS_WITH_AS(wrong.run({x.clone()}),
                       doctest::Contains("call 0, fused(aten::add_.Tensor, aten::mul.Tensor, aten::relu), differs from "
                                         "its operators one by one"),
                       DifferenceError);
  CHECK_THROWS_WITH_AS(wrong.run({x.clone()}), doctest::Contains("element [0, 0] is 2.5, not 2"), DifferenceError);
}

TEST_CASE("RUSH_COMPILE_DEBUG leaves a graph as it was after each pass") {
  const testing::TemporaryFolder folder;
  setenv("RUSH_COMPILE_DEBUG", folder.path().c_str(), 1);
  const NoGradGuard no_grad;
  auto f = compile([](const Tensor& x) {
    const Tensor dead = x.sin();
    return (x * 2).relu() + 1;
  });
  f(ones({3}));
  unsetenv("RUSH_COMPILE_DEBUG");
  std::vector<std::string> names;
  std::string page;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = file.path().filename();
    if (name.ends_with(".html")) page = text_of(file.path());
    if (name.ends_with("_traced.txt")) CHECK(text_of(file.path()).find("aten::sin") != std::string::npos);
    if (name.ends_with("_remove_dead_calls.txt")) CHECK(text_of(file.path()).find("aten::sin") == std::string::npos);
    if (name.ends_with("_fuse_element_wise_calls.dot")) CHECK(text_of(file.path()).starts_with("digraph"));
    if (name.find("graph") == 0) names.push_back(name);
  }
  // A text and a picture before all passes and after each, and the page.
  CHECK(names.size() == (get_default_device().is_cpu() ? 17 : 25));
  CHECK(page.find("traced: 4 calls") != std::string::npos);
  CHECK(page.find("fuse_element_wise_calls: 1 calls") != std::string::npos);
  CHECK(page.find("class=\"fused\"") != std::string::npos);
}

TEST_CASE("a signature says in what it differs from another") {
  const Tensor x = ones({2, 3});
  const compiler::Signature was({x, x});
  const auto difference = [&](const std::vector<Tensor>& inputs) {
    return compiler::Signature(inputs).difference_from(was);
  };
  CHECK(difference({x, x}).empty());
  CHECK(difference({x}) == "1 inputs, were 2");
  CHECK(difference({x.to(kFloat16), x}) == "input 0 has dtype float16, was float32");
  CHECK(difference({x, ones({3, 2})}) == "input 1 has sizes [3, 2], was [2, 3]");
  CHECK(difference({x, ones({3, 2}).t()}) == "input 1 has strides [1, 2], was [3, 1]");
  CHECK(difference({x, ones({2, 3})}) == "input 1 shares memory with input 1, was 0");
  const NoGradGuard no_grad;
  CHECK(difference({x, x}) == "grad mode is off");
}
