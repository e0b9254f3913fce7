#include "tests/fuzz/safetensors_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/io/crc32.h"
#include "tests/fuzz/target.h"

namespace fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLengthSize = 8, kChecksumSize = 4, kMostBytes = 4096;
constexpr std::string_view kChecksumName = "__crc32__", kMetadataName = "__metadata__";

struct Dtype {
  std::string_view name;
  size_t size;
};
constexpr std::array<Dtype, 15> kDtypes{{{"BOOL", 1},
                                         {"U8", 1},
                                         {"I8", 1},
                                         {"I16", 2},
                                         {"I32", 4},
                                         {"I64", 8},
                                         {"F16", 2},
                                         {"BF16", 2},
                                         {"F32", 4},
                                         {"F64", 8},
                                         {"C64", 8},
                                         {"U64", 8},
                                         {"F8_E4M3", 1},
                                         {"", 1},
                                         {"f32", 4}}};

struct Parts {
  std::string header, data;

  // The JSON ends where its length says, or else with its last bracket.
  explicit Parts(const std::string& file) {
    if (file.size() < kLengthSize) return;
    uint64_t length = 0;
    std::memcpy(&length, file.data(), kLengthSize);
    if (length > file.size() - kLengthSize) {
      const size_t bracket = file.rfind('}');
      length = bracket == std::string::npos || bracket < kLengthSize ? 0 : bracket + 1 - kLengthSize;
    }
    header = file.substr(kLengthSize, length);
    data = file.substr(kLengthSize + length);
  }

  std::string join() const {
    const uint64_t length = header.size();
    std::string file(reinterpret_cast<const char*>(&length), kLengthSize);
    return file + header + data;
  }
};

size_t element_size(const Json& entry) {
  if (!entry.contains("dtype") || !entry["dtype"].is_string()) return 1;
  for (const Dtype& each : kDtypes) {
    if (entry["dtype"] == each.name) return each.size;
  }
  return 1;
}

// Gives the tensors ranges of the sizes that their shapes ask for, one behind the other.
void lay_out(Json& header, std::string& data) {
  std::string laid;
  for (const bool checksum : {false, true}) {
    for (auto& [name, entry] : header.items()) {
      if ((name == kChecksumName) != checksum || name == kMetadataName || !entry.is_object()) continue;
      size_t bytes = element_size(entry), begin = 0;
      if (entry.contains("shape") && entry["shape"].is_array()) {
        for (const Json& size : entry["shape"]) {
          const uint64_t count = size.is_number_integer() ? size.get<uint64_t>() : 1;
          bytes = std::min<size_t>(count == 0 ? 0 : bytes * std::min<uint64_t>(count, kMostBytes), kMostBytes);
        }
      }
      const Json& offsets = entry.contains("data_offsets") ? entry["data_offsets"] : Json();
      if (offsets.is_array() && !offsets.empty() && offsets[0].is_number_unsigned()) begin = offsets[0].get<size_t>();
      std::string values = begin < data.size() ? data.substr(begin, bytes) : std::string();
      values.resize(bytes);
      entry["data_offsets"] = {laid.size(), laid.size() + bytes};
      laid += values;
    }
  }
  data = std::move(laid);
}

Json odd_value(Random& random) {
  switch (random.below(8)) {
    case 0: return nullptr;
    case 1: return "text";
    case 2: return random.extreme();
    case 3: return -1.5;
    case 4: return Json::array();
    case 5: return Json::object();
    case 6: return std::numeric_limits<uint64_t>::max();
    default: {
      Json deep = 1;
      for (int i = 0; i < 50; ++i) deep = Json::array({deep});
      return deep;
    }
  }
}

// Puts a number of the dtype at which arithmetic goes wrong among the tensor's values.
void mutate_values(const Json& entry, std::string& data, Random& random) {
  const Json& offsets = entry.contains("data_offsets") ? entry["data_offsets"] : Json();
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned()) return;
  const size_t size = element_size(entry), begin = offsets[0].get<size_t>();
  if (begin >= data.size() || size > 8) return;
  const size_t at = begin + size * random.below(std::min<size_t>((data.size() - begin) / size, 16));
  if (at > data.size() || size > data.size() - at) return;
  constexpr double reals[] = {0, -1, 1, NAN, INFINITY, -INFINITY, 1e300, 1e-310, 9007199254740993.0, 0.5, 1e18};
  const double real = random.pick(reals);
  const float single = static_cast<float>(real);
  const int64_t whole = random.percent(50) ? random.between(-2, 30) : random.extreme();
  const std::string dtype = entry.value("dtype", "");
  const bool floating = dtype == "F64" || dtype == "F32";
  const void* value = &whole;
  if (floating) value = size == 8 ? static_cast<const void*>(&real) : &single;
  std::memcpy(data.data() + at, value, size);
}

void mutate_shape(Json& entry, Random& random) {
  Json& shape = entry["shape"];
  if (!shape.is_array()) shape = Json::array();
  const int64_t size = random.percent(80) ? random.between(0, 5) : random.extreme();
  if (shape.empty() || random.percent(30)) {
    shape.push_back(size);
  } else if (random.percent(30)) {
    shape.erase(random.below(shape.size()));
  } else {
    shape[random.below(shape.size())] = size;
  }
}

void mutate_header(Json& header, std::string& data, Random& random) {
  const auto at = std::next(header.begin(), static_cast<std::ptrdiff_t>(random.below(header.size())));
  const std::string name = at.key();
  Json& entry = header[name];
  if (!entry.is_object() || name == kMetadataName) {
    entry = random.percent(50) ? Json{{"key", odd_value(random)}} : odd_value(random);
    return;
  }
  switch (random.below(10)) {
    case 0: entry["dtype"] = random.pick(kDtypes).name; break;
    case 1: mutate_shape(entry, random); break;
    case 2: header.erase(name); break;
    case 3: {
      Json copy = entry;
      header[random.percent(50) ? name + ".0" : name.substr(0, name.find('.'))] = std::move(copy);
      break;
    }
    case 4: {
      Json other = std::next(header.begin(), static_cast<std::ptrdiff_t>(random.below(header.size()))).value();
      entry = std::move(other);
      break;
    }
    case 5:
      entry["data_offsets"][random.below(2)] = random.percent(50) ? random.between(0, 64) : random.extreme();
      break;
    case 6: entry[random.percent(50) ? "shape" : "data_offsets"] = odd_value(random); break;
    default: mutate_values(entry, data, random);
  }
}

}  // namespace

std::string mutate_safetensors(const std::string& file, Random& random) {
  Parts parts(file);
  Json header = Json::parse(parts.header, nullptr, false);
  const bool usable = header.is_object() && !header.empty();
  if (!usable || random.percent(10)) {
    parts.header = mutate_bytes(parts.header, random);
  } else if (random.percent(10)) {
    parts.data = mutate_bytes(parts.data, random);
  } else {
    try {
      mutate_header(header, parts.data, random);
      if (random.percent(80)) lay_out(header, parts.data);
      parts.header = header.dump(-1, ' ', false, Json::error_handler_t::replace);
    } catch (const Json::exception&) {  // the header has parts of other types than this expects
      parts.header = mutate_bytes(parts.header, random);
    }
  }
  return parts.join();
}

void repair_length(std::string& file) { file = Parts(file).join(); }

void repair_checksum(std::string& file) {
  if (file.size() < kLengthSize + kChecksumSize) return;
  rush::io::Crc32 sum;
  sum.update(file.data(), file.size() - kChecksumSize);
  const uint32_t digest = sum.value();
  std::memcpy(file.data() + file.size() - kChecksumSize, &digest, kChecksumSize);
}

}  // namespace fuzz
