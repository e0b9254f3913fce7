// Times gated_rms_norm beside its reference and beside a copy of memory.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "capstone.h"
#include "operator.h"

using namespace rush;

// The fewest seconds of several calls.
template <class Call>
static double seconds_of(const Call& call) {
  double fewest = 1e9;
  for (int time = 0; time < 15; ++time) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    fewest = std::min(fewest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return fewest;
}

int main() {
  capstone::register_operator(registry());
  const Tensor x = randn({512, 2048}), gate = randn({512, 2048}), weight = randn({2048}), copy = empty_like(x);
  const double own = seconds_of([&] { capstone::gated_rms_norm(x, gate, weight); });
  const double composite = seconds_of([&] { capstone::subject().reference({x, gate, weight}, 1e-5); });
  const double copying = seconds_of([&] { copy.copy_(x); });
  const double bandwidth = 2 * static_cast<double>(x.nbytes()) / copying;  // bytes a second: read once, written once
  const double rate = static_cast<double>(3 * x.nbytes() + weight.nbytes()) / own;
  std::printf("fused %.2f ms, composite %.2f ms: %.2f times as fast\n", own * 1e3, composite * 1e3, composite / own);
  std::printf("%.1f GB/s, which is %.0f %% of the memory bandwidth\n", rate / 1e9, 100 * rate / bandwidth);
}
