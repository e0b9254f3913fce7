// Writes what lab 10's functions give on the emulated grid to a file: the outputs of all calls, as floats one after
// another. gpu/kernels.cu compares. usage: rush_lab_kernel_results FILE
#include <cstdio>

#include "tests/labs/grid/grid.h"
#include "tests/labs/kernel_cases.h"

using namespace rush;

int main(int argc, char** argv) {
  const labs::File file(argc == 2 ? std::fopen(argv[1], "wb") : nullptr);
  if (!file) {
    std::fputs("usage: rush_lab_kernel_results FILE\n", stderr);
    return 2;
  }
  for (const labs::KernelCase& c : labs::kKernelCases) {
    const grid::Buffer<float> in("in", labs::inputs_of(c)), out("out", c.outputs());
    labs::make_call(c, in.data(), out.data());
    const auto count = static_cast<size_t>(c.outputs());
    if (std::fwrite(out.data(), sizeof(float), count, file.get()) != count) return 1;
  }
}
