// The ranges that RUSH_NVTX=1 shows a profiler.
#include <doctest/doctest.h>

#include "core/dispatch/call_ranges.h"
#include "core/dispatch/op.h"
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
  RecordedRanges() : previous_ranges_(detail::call_ranges), previous_keys_(devices_to_check) {
    ranges().clear();
    detail::call_ranges = {[](std::string_view op) {
                             ranges().push_back("(" + std::string(op));
                             ++depth;
                           },
                           []() noexcept {
                             ranges().push_back(")");
                             --depth;
                           }};
    devices_to_check |= kCUDA;
  }
  ~RecordedRanges() {
    detail::call_ranges = previous_ranges_;
    devices_to_check = previous_keys_;
  }

 private:
  detail::CallRanges previous_ranges_;
  KeySet previous_keys_;
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
    CHECK_THROWS_AS(x + y, ValueError);  // refused before anything runs
    CHECK(ranges().size() == 4);
    zeros({2}, kCUDA);  // a factory; what it calls in turn lies within it
    CHECK(ranges()[4] == "(aten::zeros");
    CHECK(ranges().back() == ")");
    CHECK(depth == 0);
  }
  const size_t before = ranges().size();
  x + x;
  CHECK(ranges().size() == before);
}
