// Random programs, compiled and as they stand. RUSH_COMPILE_PROGRAMS=N runs N of them instead of 150; on a GPU, whose
// loops are compiled, of 15. tests/fuzz/compiled.cpp runs others for as long as one likes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "tests/compile/random_program.h"

using namespace rush;

TEST_CASE("random programs give the same bits compiled") {
  const char* wanted = std::getenv("RUSH_COMPILE_PROGRAMS");
  const int programs = wanted ? std::atoi(wanted) : zeros({1}).is_cpu() ? 150 : 15;
  size_t fused = 0;
  for (int seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    manual_seed(static_cast<uint64_t>(seed));
    testing::RandomProgram program(static_cast<uint64_t>(seed), testing::Variety::Plain);
    compiler::CompiledFunction compiled({});
    for (int call = 0; call < 3; ++call) {
      const std::vector<Tensor> inputs = program.make_inputs(call), expected = program.run(inputs);
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
