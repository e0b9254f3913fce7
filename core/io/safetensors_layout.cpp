#include "core/io/safetensors_layout.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "core/error/error.h"
#include "core/io/array_bytes.h"
#include "core/io/little_endian.h"

namespace rush::io {
namespace {

using Json = nlohmann::json;
using Entry = SafetensorsFile::Entry;

constexpr uint64_t kLengthSize = 8;  // of the header's length, which begins the file
constexpr size_t kAlignment = 8;     // of the data

std::string_view name_of(ScalarType dtype) {
  const std::string_view name = traits_of(dtype).safetensors;
  RUSH_CHECK_TYPE(!name.empty(), "save_safetensors: the format has no dtype for ", dtype);
  return name;
}

// The text as a JSON string. Throws ValueError unless it is UTF-8.
std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    RUSH_THROW(ValueError, "save_safetensors: a name or metadata is not UTF-8 text");
  }
}

// No Json list: its destructor allocates, and cannot throw when there is no memory.
std::string joined(IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += str(text.empty() ? "" : ",", size);
  return text;
}

void check_savable(const std::vector<Entry>& entries) {
  std::unordered_set<std::string_view> names;
  for (const Entry& entry : entries) {
    RUSH_CHECK_VALUE(entry.name != kSafetensorsMetadata, "save_safetensors: a tensor cannot be named '",
                     kSafetensorsMetadata, "'");
    RUSH_CHECK_VALUE(names.insert(entry.name).second, "save_safetensors: two tensors are named '", entry.name, "'");
    name_of(entry.dtype);
  }
}

// Within the data.
void place(std::vector<Entry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return element_size(entries[i].dtype); });
  uint64_t end = 0;
  for (const size_t i : order) {
    const std::optional<uint64_t> bytes = array_bytes(entries[i].shape, entries[i].dtype);
    RUSH_CHECK_VALUE(bytes, "save_safetensors: tensor '", entries[i].name, "' of shape ", entries[i].shape,
                     " has more than 2^63 bytes");
    entries[i].begin = end;
    entries[i].end = end += *bytes;
  }
}

// Padded so that the data begin aligned.
std::string make_header(const std::vector<Entry>& entries, const Metadata& metadata) {
  std::string header = "{", separator;
  if (!metadata.empty()) {
    header += str(quoted(std::string(kSafetensorsMetadata)), ":{");
    for (const auto& [key, text] : metadata) {
      header += str(separator, quoted(key), ":", quoted(text));
      separator = ",";
    }
    header += "}";
  }
  for (const Entry& entry : entries) {
    header += str(separator, quoted(entry.name), ":{\"dtype\":\"", name_of(entry.dtype), "\",\"shape\":[",
                  joined(entry.shape), "],\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
    separator = ",";
  }
  header += "}";
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return header;
}

}  // namespace

std::string lay_out_safetensors(std::vector<Entry>& entries, const Metadata& metadata) {
  check_savable(entries);
  place(entries);
  const std::string header = make_header(entries, metadata);
  std::string start;
  put_little_endian(start, header.size(), kLengthSize);
  start += header;
  for (Entry& entry : entries) {
    entry.begin += start.size();
    entry.end += start.size();
  }
  return start;
}

}  // namespace rush::io
