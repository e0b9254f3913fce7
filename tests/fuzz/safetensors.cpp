// Fuzzes the safetensors reader: the header, every tensor, the checksum.
#include "core/io/safetensors.h"

#include "tests/fuzz/safetensors_file.h"
#include "tests/fuzz/target.h"

namespace {

std::string file_of(const std::string& header, size_t bytes) {
  std::string file = "12345678" + header + std::string(bytes, '\1');
  fuzz::repair_checksum(file);
  const uint64_t length = header.size();
  file.replace(0, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
  return file;
}

std::vector<std::string> seeds() {
  return {file_of(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
          file_of(R"({"__metadata__":{"k":"v"},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},)"
                  R"("c":{"dtype":"I64","shape":[],"data_offsets":[3,11]}})",
                  11),
          file_of(R"({"x":{"dtype":"BF16","shape":[0,9],"data_offsets":[0,0]},)"
                  R"("__crc32__":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                  4),
          file_of("{}", 0)};
}

void repair(std::string& file) {
  fuzz::repair_length(file);
  if (file.find("__crc32__") != std::string::npos) fuzz::repair_checksum(file);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, fuzz::mutate_safetensors, repair}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::test_reader(data, size, [](const std::string& path) {
    rush::io::SafetensorsFile file(path);
    for (const auto& entry : file.entries()) fuzz::check_tensor(file.read(entry));
    file.verify_checksum();
    for (const auto& entry : file.entries()) fuzz::check_tensor(file.read(entry.name));
  });
}
