// Writes a dict as torch.save does.
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/io/array_source.h"
#include "core/io/little_endian.h"
#include "core/io/pickle.h"
#include "core/io/pt.h"
#include "core/io/zip_archive.h"
#include "core/memory/has_data.h"

namespace rush::io {

namespace {

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

void put_text(std::string& out, std::string_view text) {
  out += static_cast<char>(kBinUnicode);
  put_little_endian(out, text.size(), 4);
  out += text;
}
void put_number(std::string& out, int64_t number) {
  out += static_cast<char>(kLong1);
  out += '\x08';
  put_little_endian(out, static_cast<uint64_t>(number), 8);
}
void put_value(std::string& out, const std::string& name, const Value& value) {
  if (value.is<int64_t>()) {
    put_number(out, value.as<int64_t>());
  } else if (value.is<bool>()) {
    out += static_cast<char>(value.as<bool>() ? kNewTrue : kNewFalse);
  } else if (value.is<std::string>()) {
    RUSH_CHECK_VALUE(is_utf8(value.as<std::string>()), "save_pt: the text '", name, "' is not UTF-8");
    put_text(out, value.as<std::string>());
  } else {
    RUSH_CHECK_TYPE(value.is<double>(), "save_pt: '", name, "' is of kind ", value.kind(), ", which is not written");
    out += static_cast<char>(kBinFloat);
    const auto bits = std::bit_cast<uint64_t>(value.as<double>());
    for (int byte = 7; byte >= 0; --byte) out += static_cast<char>(bits >> (8 * byte));
  }
}
void put_tuple(std::string& out, IntArrayRef numbers) {
  out += static_cast<char>(kMark);
  for (const int64_t n : numbers) put_number(out, n);
  out += static_cast<char>(kTuple);
}

// _rebuild_tensor_v2((the storage), 0, sizes, strides, False, OrderedDict()), or v3 with the dtype as one argument
// more.
void put_tensor(std::string& out, const Tensor& tensor, size_t key) {
  const char* known = storage_class(tensor.scalar_type());
  out += str("ctorch._utils\n_rebuild_tensor_v", known ? 2 : 3, "\n((");
  put_text(out, "storage");
  out += known ? str("ctorch\n", known, "\n") : "ctorch.storage\nUntypedStorage\n";
  put_text(out, str(key));
  put_text(out, "cpu");
  put_number(out, known ? tensor.numel() : tensor.numel() * tensor.element_size());
  out += "tQ";
  put_number(out, 0);
  put_tuple(out, tensor.sizes());
  put_tuple(out, contiguous_strides(tensor.sizes()));
  out += static_cast<char>(kNewFalse);
  out += "ccollections\nOrderedDict\n)R";
  if (!known) out += str("ctorch\n", tensor.scalar_type(), "\n");
  out += "tR";
}

}  // namespace

void save_pt(const std::string& path, const NamedTensors& tensors) {
  save_pt_values(path, NamedValues(tensors.begin(), tensors.end()));
}

void save_pt_values(const std::string& path, const NamedValues& values) {
  std::unordered_set<std::string_view> names;
  std::vector<Tensor> tensors;  // the storages, by their keys
  const bool is_dict = values.size() != 1 || !values[0].first.empty();
  std::string pickle = is_dict ? "\x80\x02}(" : "\x80\x02";
  for (const auto& [name, value] : values) {
    RUSH_CHECK_VALUE(is_utf8(name), "save_pt: the name of value ", names.size(), " is not UTF-8");
    RUSH_CHECK_VALUE(names.insert(name).second, "save_pt: two values are named '", name, "'");
    if (is_dict) put_text(pickle, name);
    if (value.is<Tensor>()) {
      const Tensor& tensor = value.as<Tensor>();
      RUSH_CHECK_VALUE(detail::can_be_saved(tensor), "save_pt: '", name, detail::kCannotBeSaved);
      put_tensor(pickle, tensor, tensors.size());
      tensors.push_back(tensor);
    } else {
      put_value(pickle, name, value);
    }
  }
  pickle += is_dict ? "u." : ".";
  ZipWriter archive(path);
  archive.add("archive/data.pkl", std::make_unique<BytesSource>(std::move(pickle)), false);
  archive.add("archive/byteorder", std::make_unique<BytesSource>("little"), false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    archive.add(str("archive/data/", i), std::make_unique<ArraySource>(Array{"", tensors[i]}), false);
  }
  archive.add("archive/version", std::make_unique<BytesSource>("3\n"), false);
  archive.commit();
}

}  // namespace rush::io
