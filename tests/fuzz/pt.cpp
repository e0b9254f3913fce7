// Fuzzes load_pt: the input is the pickle of an archive with two storages.
#include "core/io/pt.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/io/zip_archive.h"
#include "rushlight.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/target.h"

namespace {

using fuzz::Random;

// Each process has its own, and removes it.
struct File {
  std::string path = (std::filesystem::temp_directory_path() / rush::str("fuzz-", ::getpid(), ".pt")).string();
  ~File() { std::remove(path.c_str()); }
};
const std::string& file_path() {
  static const File file;
  return file.path;
}

// What save_pt writes for some tensors whose storages the archive has: 6 floats, 4 bools.
std::vector<std::string> seeds() {
  std::vector<std::string> pickles;
  for (const rush::Tensor& first : {rush::ones({2, 3}), rush::ones({6}), rush::ones({3, 2}).t()}) {
    rush::io::save_pt(file_path(), {{"w", first}, {"b", rush::zeros({4}, rush::kBool)}});
    rush::io::ZipReader archive(file_path(), "a file of torch.save");
    const auto source = archive.open(0);
    pickles.emplace_back(source->left(), '\0');
    source->read(pickles.back().data(), pickles.back().size());
  }
  return pickles;
}

// Bytes, or a whole instruction: one that takes much from the stack or the memo, or a piece of the pickle once more.
std::string mutate(const std::string& pickle, Random& random) {
  if (random.percent(50) || pickle.empty()) return fuzz::mutate_bytes(pickle, random);
  static const std::string kInstructions[] = {"(",
                                              "t",
                                              "u",
                                              "e",
                                              "a",
                                              "s",
                                              "R",
                                              "Q",
                                              "b",
                                              "}",
                                              "]",
                                              ")",
                                              "N",
                                              "q\1",
                                              "h\1",
                                              "\x85",
                                              "\x86",
                                              "\x87",
                                              "K\5",
                                              "J\xff\xff\xff\xff",
                                              "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"};
  std::string changed = pickle;
  const size_t at = random.below(pickle.size());
  if (random.percent(70)) return changed.insert(at, kInstructions[random.below(std::size(kInstructions))]);
  const size_t from = random.below(pickle.size());
  return changed.insert(at, pickle.substr(from, random.below(64)));
}

void repair(std::string&) {}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, mutate, repair}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rush::io::ZipWriter archive(file_path());
  archive.add("a/data.pkl", std::make_unique<rush::io::BytesSource>(std::string(data, data + size)), false);
  archive.add("a/data/0", std::make_unique<rush::io::BytesSource>(std::string(24, '\0')), false);
  archive.add("a/data/1", std::make_unique<rush::io::BytesSource>(std::string(4, '\1')), false);
  archive.commit();
  return fuzz::test_reader(data, size, [](const std::string&) {
    for (const auto& [name, tensor] : rush::io::load_pt(file_path())) fuzz::check_tensor(tensor);
  });
}
