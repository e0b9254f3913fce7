// docs/compile.md walks a net through the passes: its lines are what the compiler leaves in RUSH_COMPILE_DEBUG.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;

TEST_CASE("the page of compiled functions shows the graphs that its net has" *
          doctest::skip(std::getenv("RUSH_ROOT") == nullptr)) {
  const testing::TemporaryFolder folder;
  setenv("RUSH_COMPILE_DEBUG", folder.path().c_str(), 1);
  nn::Sequential net(nn::Linear(8, 32), nn::GELU(), nn::Dropout(0.1), nn::Linear(32, 3));
  net->to(kCPU);
  optim::AdamW optimizer(net->parameters(), 1e-2);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 2; ++i) step(randn({16, 8}, kCPU), zeros({16}, TensorOptions(kInt64).device(kCPU)));
  unsetenv("RUSH_COMPILE_DEBUG");

  std::set<std::string> lines;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream text(file.path());
    for (std::string line; std::getline(text, line);) lines.insert(line.substr(0, line.find("  // ")));
  }
  std::ifstream page(std::string(std::getenv("RUSH_ROOT")) + "/docs/compile.md");
  size_t shown = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("  %") && !line.starts_with("  optimizer.step([")) continue;
    CAPTURE(line);
    CHECK(lines.contains(line));
    ++shown;
  }
  CHECK(shown > 20);
}
