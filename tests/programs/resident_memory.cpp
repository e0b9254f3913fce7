// Tensors of random sizes to 400 MB, one alive at a time and written to: the process never holds much more than the
// largest beyond what its code takes (with CUDA's libraries some 230 MB). `resident_memory 10000` makes so many; it
// also lives where no more than that is to be had:
//   systemd-run --scope -p MemoryMax=1200M build/release/tests/resident_memory 10000
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#ifdef __unix__
#include <unistd.h>
#endif

#include "rushlight.h"

using namespace rush;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // what is resident is then the sanitizer's, too
#else
constexpr bool kSanitized = false;
#endif

constexpr int64_t kPage = 4096, kLargest = 400'000'000;

// 0 where the system does not say it as Linux does.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
#ifdef __unix__
  std::ifstream file("/proc/self/statm");
  file >> all >> resident;
  resident *= ::sysconf(_SC_PAGESIZE);
#endif
  return resident;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100;
  const int64_t code = resident_bytes();
  std::mt19937_64 random(1);
  int64_t largest = 0, resident = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t size = std::uniform_int_distribution<int64_t>(1, kLargest)(random);
    Tensor tensor = empty({size}, kUInt8);
    for (int64_t at = 0; at < size; at += kPage) tensor.data_ptr<uint8_t>()[at] = 1;
    largest = std::max(largest, size);
    resident = std::max(resident, resident_bytes() - code);
  }
  const int64_t bound = largest + largest / 5 + 64 * (int64_t{1} << 20);
  std::printf("%d tensors, the largest of %lld bytes: %lld resident, at most %lld are accepted\n", count,
              static_cast<long long>(largest), static_cast<long long>(resident), static_cast<long long>(bound));
  return kSanitized || resident <= bound ? 0 : 1;
}
