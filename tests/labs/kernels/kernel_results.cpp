// Writes what the functions of a lab of kernels give on the emulated grid to a file: the outputs of all calls, as
// floats one after another. The programs in gpu/ compare. usage: rush_lab_kernel_results LAB FILE
#include <cstdio>

#include "tests/labs/kernels/attention_cases.h"
#include "tests/labs/kernels/grid_call.h"
#include "tests/labs/kernels/kernel_cases.h"
#include "tests/labs/kernels/matmul_cases.h"

using namespace rush::labs;

namespace {

std::vector<KernelCall> calls_of(const std::string& lab) {
  if (lab == "10") return kernel_calls();
  if (lab == "12") return matmul_calls();
  if (lab == "13") return attention_calls();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<KernelCall> calls = calls_of(argc == 3 ? argv[1] : "");
  const File file(calls.empty() ? nullptr : std::fopen(argv[2], "wb"));
  if (!file) {
    std::fputs("usage: rush_lab_kernel_results LAB FILE\n", stderr);
    return 2;
  }
  for (const KernelCall& call : calls) {
    const std::vector<float> outputs = outputs_on_grid(call);
    if (std::fwrite(outputs.data(), sizeof(float), outputs.size(), file.get()) != outputs.size()) return 1;
  }
}
