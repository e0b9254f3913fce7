// A kernel that tells how it was launched, for the tests of launch_kernel.
#pragma once
#include <cstdint>

namespace rush::testing {

// Most of the 4 KiB that a kernel's arguments may take.
struct LargeArgument {
  int64_t values[480];
};

// What the kernel writes, from element 0: grid and block (x, y and z of each), bytes of dynamic shared memory,
// `number`, the last of `large`, and whether `none` is null.
inline constexpr int kProbed = 10;
using ProbeKernel = void (*)(int64_t* out, int64_t number, LargeArgument large, const float* none);

// Kernels that do the same: whoever launches one for the first time takes one of his own.
ProbeKernel probe_kernel();
ProbeKernel probe_kernel_for_capture();
ProbeKernel probe_kernel_for_thread();

}  // namespace rush::testing
