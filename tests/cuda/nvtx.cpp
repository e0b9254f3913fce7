// The ranges that RUSH_NVTX=1 shows a profiler.
#include <doctest/doctest.h>

#include "core/profiler/record.h"
#include "rushlight.h"

using namespace rush;

namespace {

std::vector<std::string>& ranges() {
  static std::vector<std::string> all;
  return all;
}
int depth = 0;

// While there is one, calls on the GPU are written down as "(name" and ")".
class RecordedRanges {
 public:
  RecordedRanges() : previous_(profiler::call_ranges) {
    ranges().clear();
    profiler::call_ranges = {[](std::string_view op) {
                               ranges().push_back("(" + std::string(op));
                               ++depth;
                             },
                             []() noexcept {
                               ranges().push_back(")");
                               --depth;
                             }};
    watching |= DispatchKey::Profiler;
  }
  ~RecordedRanges() {
    profiler::call_ranges = previous_;
    watching = watching.without(DispatchKey::Profiler);
  }

 private:
  profiler::CallRanges previous_;
};

}  // namespace

TEST_CASE("profiling ranges span the calls of operators on a GPU" * doctest::skip(!cuda::is_available())) {
  const Tensor x = ones({2, 3}, kCUDA), y = ones({2, 3});
  {
    const RecordedRanges recorded;
    x* x;
    CHECK(ranges() == std::vector<std::string>{"(aten::mul.Tensor", ")"});
    y* y;
    CHECK(ranges().size() == 2);
    CHECK_THROWS_AS(x.mm(x), ValueError);
    CHECK(ranges().size() == 4);
    CHECK_THROWS_AS(x + y, ValueError);  // its tensors lie on two devices
    CHECK(ranges().size() == 6);
    zeros({2}, kCUDA);  // a factory; what it calls in turn lies within it
    CHECK(ranges()[6] == "(aten::zeros");
    CHECK(ranges().back() == ")");
    CHECK(depth == 0);
  }
  const size_t before = ranges().size();
  x + x;
  CHECK(ranges().size() == before);
}
