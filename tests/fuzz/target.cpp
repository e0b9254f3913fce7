#include "tests/fuzz/target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/tensor_impl.h"

namespace fuzz {

MemoryFile::MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("memfd_create failed");
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::write(std::string_view content) {
  const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                       ::pwrite(descriptor_, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size());
  if (!written) fail("cannot write a file in memory");
}

size_t mutate(const Format& format, uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  static const std::vector<std::string> seeds = format.seeds();
  Random random(seed);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size < 2 || random.percent(2)) {
    file = random.pick(seeds);
  } else if (random.percent(50)) {
    file.resize(LLVMFuzzerMutate(data, size, max_size));
    std::memcpy(file.data(), data, file.size());
  }
  const size_t changes = 1 + random.below(3);
  for (size_t i = 0; i < changes && random.percent(60); ++i) file = format.mutate(file, random);
  if (random.percent(90)) format.repair(file);
  file.resize(std::min(file.size(), max_size));
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

std::string mutate_number(std::string text, Random& random) {
  std::vector<size_t> starts;
  const auto digit = [&](size_t i) { return std::isdigit(static_cast<unsigned char>(text[i])) != 0; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (digit(i) && (i == 0 || !digit(i - 1))) starts.push_back(i);
  }
  if (starts.empty()) return text;
  const size_t begin = random.pick(starts);
  size_t end = begin;
  while (end < text.size() && digit(end)) ++end;
  const int64_t value = random.percent(60) ? random.between(0, 9) : random.extreme();
  return text.replace(begin, end - begin, std::to_string(value));
}

std::string mutate_bytes(std::string bytes, Random& random) {
  const size_t at = random.below(bytes.size() + 1), rest = bytes.size() - at;
  const size_t length = std::min(rest, size_t{1} << random.below(7));
  switch (random.below(8)) {
    case 0: bytes.insert(at, 1, static_cast<char>(random.next())); break;
    case 1: bytes.erase(at, length); break;
    case 2: bytes.insert(random.below(bytes.size() + 1), std::string(bytes, at, length)); break;
    case 3: return mutate_number(std::move(bytes), random);
    case 4: bytes.resize(at); break;
    case 5: {
      const int64_t value = random.extreme();
      const size_t width = std::min(rest, size_t{1} << random.below(4));
      std::memcpy(bytes.data() + at, &value, width);
      if (random.percent(50)) std::reverse(bytes.data() + at, bytes.data() + at + width);
      break;
    }
    default:
      if (rest == 0) break;
      bytes[at] = static_cast<char>(random.percent(50) ? random.next() : bytes[at] ^ (1 << random.below(8)));
  }
  return bytes;
}

void fail(const std::string& message) {
  std::fprintf(stderr, "fuzz: %s\n", message.c_str());
  std::abort();
}

void check_error(const rush::Error& error) {
  const std::string_view message = error.what();
  if (message.empty() || message.find('\n') != message.npos) fail("an error is not one line");
  if (message.starts_with("internal assertion")) fail(std::string(message));
}

void check_tensor(const rush::Tensor& tensor) {
  const int64_t elements = rush::storage_extent(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  const bool inside = elements >= 0 && static_cast<uint64_t>(elements) * static_cast<uint64_t>(tensor.element_size()) <=
                                           tensor.storage()->nbytes();
  if (!inside) fail("a tensor exceeds its memory");
}

}  // namespace fuzz
