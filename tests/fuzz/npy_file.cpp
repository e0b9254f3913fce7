#include "tests/fuzz/npy_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "tests/fuzz/target.h"

namespace fuzz {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Dtype {
  std::string_view name;
  size_t size;
};
constexpr std::array<Dtype, 16> kDtypes{{{"'|b1'", 1},
                                         {"'|u1'", 1},
                                         {"'<i2'", 2},
                                         {"'<i4'", 4},
                                         {"'<i8'", 8},
                                         {"'<f2'", 2},
                                         {"'<f4'", 4},
                                         {"'<f8'", 8},
                                         {"'<c8'", 8},
                                         {"'<c16'", 16},
                                         {"\"<f4\"", 4},
                                         {"'>f4'", 4},
                                         {"'<U7'", 28},
                                         {"''", 1},
                                         {"'|O'", 8},
                                         {"[('a', '<f4')]", 4}}};
constexpr std::array<std::string_view, 12> kTokens{
    "'descr'", "'shape'", "'fortran_order'", "True", "False", "(", ")", ",", "{", "}", ": ", "-1"};

struct Parts {
  size_t length_size = 2;
  std::string start, header, values;  // magic number and version; the dictionary; the rest

  explicit Parts(const std::string& file) {
    start = file.substr(0, 8);
    if (start.size() == 8 && start[6] != 1) length_size = 4;
    const size_t begin = std::min(file.size(), 8 + length_size);
    const size_t newline = file.find('\n', begin);
    const size_t end = newline == std::string::npos ? file.size() : newline + 1;
    header = file.substr(begin, end - begin);
    values = file.substr(end);
  }

  std::string join() const {
    std::string length;
    for (size_t i = 0; i < length_size; ++i) length += static_cast<char>(header.size() >> (8 * i));
    return start + length + header + values;
  }
};

}  // namespace

std::string random_npy(Random& random) {
  const Dtype& dtype = kDtypes[random.below(random.percent(90) ? 10 : kDtypes.size())];
  const size_t dims = random.below(random.percent(95) ? 5 : 70);
  size_t bytes = dtype.size;
  std::string shape;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t size = random.percent(97) ? random.between(0, 4) : random.extreme();
    bytes = std::min(bytes * static_cast<size_t>(size), size_t{4096});
    shape += std::to_string(size) + (i + 1 < dims || dims == 1 ? ", " : "");
  }
  const std::string order = random.percent(50) ? "True" : "False";
  Parts parts(std::string(kMagic) + std::string("\1\0", 2));
  if (random.percent(30)) {
    parts.start[6] = static_cast<char>(random.between(2, 3));
    parts.length_size = 4;
  }
  parts.header =
      "{'descr': " + std::string(dtype.name) + ", 'fortran_order': " + order + ", 'shape': (" + shape + "), }\n";
  parts.values.assign(bytes, static_cast<char>(random.below(2)));
  return parts.join();
}

std::string mutate_npy(const std::string& file, Random& random) {
  Parts parts(file);
  switch (random.below(6)) {
    case 0: return random_npy(random);
    case 1: parts.header = mutate_number(parts.header, random); break;
    case 2: parts.header = mutate_bytes(parts.header, random); break;
    case 3: parts.header.insert(random.below(parts.header.size() + 1), random.pick(kTokens)); break;
    case 4: parts.values.resize(random.below(2 * parts.values.size() + 2)); break;
    default: parts.values = mutate_bytes(parts.values, random);
  }
  return parts.join();
}

void repair_npy(std::string& file) { file = Parts(file).join(); }

}  // namespace fuzz
