// Fuzzes load_npy.
#include "core/io/npy.h"

#include "tests/fuzz/npy_file.h"
#include "tests/fuzz/target.h"

namespace {

std::vector<std::string> seeds() {
  fuzz::Random random(1);
  std::vector<std::string> files(8);
  for (std::string& file : files) file = fuzz::random_npy(random);
  return files;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, fuzz::mutate_npy, fuzz::repair_npy}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::test_reader(data, size, [](const std::string& path) { fuzz::check_tensor(rush::io::load_npy(path)); });
}
