// A graph says which line of the program called what makes each tensor. This file is compiled with -g.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/debug/source_line.h"
#include "core/debug/stack_trace.h"
#include "core/str.h"
#include "rushlight.h"
#include "tests/environment_guard.h"
#include "tests/temporary_folder.h"
#include "tests/warnings.h"

using namespace rush;
using namespace rush::testing;

namespace {

std::string at_line(int line) { return str("  // program_lines.cpp:", line, '\n'); }

}  // namespace

TEST_CASE("RUSH_COMPILE_DEBUG notes the program's line of each call, and passes keep it") {
  const TemporaryFolder folder;
  const EnvironmentGuard guard("RUSH_COMPILE_DEBUG", folder.path());
  const nn::Linear layer(3, 2);
  const int first = __LINE__ + 2;
  auto f = compile([&](const Tensor& x) {
    const Tensor doubled = x * 2;
    const Tensor scores = layer->forward(doubled + 1);
    return scores.exp();
  });
  f(ones({4, 3}));
  size_t seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = file.path().filename(), text = file_content(file.path());
    if (name.find("forward") == name.npos) continue;
    CAPTURE(text);
    if (name.ends_with("_traced.txt") && ++seen) {
      CHECK(text.find(str("aten::mul.Tensor(%0, %1)", at_line(first))) != text.npos);
      CHECK(text.find(at_line(first + 1), text.find("aten::linear(")) != text.npos);
      CHECK(text.find(at_line(first + 2)) != text.npos);
    }
    // The loop is of two lines, and makes what the second one gives.
    if (name.ends_with("_fuse_element_wise_calls.txt") && ++seen)
      CHECK(text.find(at_line(first + 1), text.find("fused(aten::mul.Tensor, aten::add.Tensor)(")) != text.npos);
  }
  CHECK(seen >= 2);
}

TEST_CASE("what cannot be traced is told with the program's line") {
  const Warnings warnings;
  int line = 0;
  auto f = compile([&](const Tensor& x) {
    const Tensor y = (x * 2).exp();
    line = __LINE__ + 1;
    return y.to_sparse().to_dense();
  });
  for (int i = 0; i < 2; ++i) f(ones({3}));
  CAPTURE(f.obstacle());
  CHECK(f.obstacle().find(str(", called from program_lines.cpp:", line, ", ")) != std::string::npos);
}

TEST_CASE("a number that an operator reads is told with the program's line, too") {
  const Warnings warnings;
  int line = 0;
  auto f = compile([&](const Tensor& x) {
    line = __LINE__ + 1;
    return x.quantile(0.5);
  });
  for (int i = 0; i < 2; ++i) f(ones({3}));
  CAPTURE(f.obstacle());
  CHECK(f.obstacle().find(str(", called from program_lines.cpp:", line, ", ")) != std::string::npos);
}

TEST_CASE("graphs name no lines without it") {
  const NoGradGuard no_grad;
  auto f = compile([](const Tensor& x) { return x.exp(); });
  f(ones({3}));
  CHECK(f.graph().print().find("//") == std::string::npos);
}

TEST_CASE("an address has a line where the program was compiled with -g") {
  const int here = __LINE__ + 1;
  const void* const address = StackTrace::capture().caller_with_line();
  const SourceLine where = source_line(address);
  CHECK(short_text(where) == str("program_lines.cpp:", here));
  CHECK(std::filesystem::exists(where.file));
  for (const void* nowhere : {static_cast<const void*>(nullptr), static_cast<const void*>(&here)}) {
    CHECK(source_line(nowhere).line == 0);
    CHECK(short_text(source_line(nowhere)).empty());
  }
}
