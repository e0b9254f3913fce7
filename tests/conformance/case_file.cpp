#include "tests/conformance/case_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include "core/io/read_file.h"
#include "rushlight.h"

namespace conformance {

using nlohmann::json;
using rush::Tensor;
using rush::Value;

namespace {

Case parse_case(const json& line) {
  Case one;
  one.id = line.at("id");
  one.family = line.at("op");
  one.overload = line.at("overload");
  one.schema = line.at("schema");
  one.dtype = dtype_named(line.at("dtype"));
  one.args = line.at("args");
  one.kwargs = line.at("kwargs");
  one.outputs = line.at("outputs");
  one.grad_outputs = line.value("grad_outputs", json::object());
  one.grads = line.value("grads", json::object());
  one.refused = line.value("refused", "");
  return one;
}

std::vector<Case> parse_cases(const std::string& path) {
  const std::vector<uint8_t> content = rush::io::read_file(path);
  std::string_view rest(reinterpret_cast<const char*>(content.data()), content.size());
  std::vector<Case> cases;
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.empty()) continue;
    try {
      cases.push_back(parse_case(json::parse(line)));
    } catch (const std::exception& error) {
      RUSH_THROW(rush::IOError, path, ":", number, ": not a case: ", error.what());
    }
  }
  return cases;
}

std::string tensors_beside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".safetensors").string();
}

std::vector<int64_t> sizes_of(const json& spec) { return spec.at("shape").get<std::vector<int64_t>>(); }

// The values of the row-major `from`, laid out with `strides`; positions that share memory hold the same value.
Tensor with_strides(const Tensor& from, const std::vector<int64_t>& strides, rush::Device device) {
  const int64_t extent = rush::storage_extent(from.sizes(), strides, 0);
  const Tensor memory = rush::zeros({extent}, from.scalar_type());
  const size_t element = static_cast<size_t>(from.element_size());
  const char* values = static_cast<const char*>(from.data_ptr());
  char* out = static_cast<char*>(memory.data_ptr());
  for (int64_t i = 0; i < from.numel(); ++i) {
    int64_t offset = 0, rest = i;
    for (int64_t d = from.dim() - 1; d >= 0; --d) {
      offset += rest % from.size(d) * strides[static_cast<size_t>(d)];
      rest /= from.size(d);
    }
    std::memcpy(out + offset * from.element_size(), values + i * from.element_size(), element);
  }
  return memory.to(device).as_strided(from.sizes(), strides).detach();
}

std::vector<int64_t> strides_in(ArgumentOrder order, rush::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = order == ArgumentOrder::Spread ? 2 : 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t d = order == ArgumentOrder::Reversed ? i : sizes.size() - 1 - i;
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

double special_float(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  RUSH_CHECK_VALUE(text == "nan", "no float is written '", text, "'");
  return std::numeric_limits<double>::quiet_NaN();
}

template <class E>
E named(const std::string& text, std::initializer_list<std::pair<const char*, E>> names) {
  for (const auto& [name, value] : names) {
    if (text == name) return value;
  }
  RUSH_THROW(rush::ValueError, "unknown name '", text, "'");
}

}  // namespace

rush::ScalarType dtype_named(const std::string& text) {
  for (int i = 0; i < rush::kNumScalarTypes; ++i) {
    const auto type = static_cast<rush::ScalarType>(i);
    if (text == rush::name(type)) return type;
  }
  RUSH_THROW(rush::ValueError, "no dtype is named '", text, "'");
}

CaseFile::CaseFile(const std::string& path, ArgumentOrder order)
    : cases_(parse_cases(path)), order_(order), tensors_(tensors_beside(path)) {}

Tensor CaseFile::tensor(const json& spec) const {
  const rush::ScalarType dtype = dtype_named(spec.at("dtype"));
  const std::vector<int64_t> sizes = sizes_of(spec);
  const std::string key = spec.at("tensor");
  const Tensor stored = tensors_.read(key);
  if (!rush::is_complex(dtype)) {
    RUSH_CHECK_VALUE(stored.scalar_type() == dtype && stored.sizes() == rush::IntArrayRef(sizes), "tensor '", key,
                     "' is stored as ", stored.scalar_type(), " ", stored.sizes(), ", the case says ", dtype, " ",
                     sizes);
    return stored;
  }
  // Stored as pairs of real numbers.
  std::vector<int64_t> pairs = sizes;
  pairs.push_back(2);
  RUSH_CHECK_VALUE(stored.scalar_type() == rush::to_real(dtype) && stored.sizes() == rush::IntArrayRef(pairs),
                   "tensor '", key, "' is stored as ", stored.scalar_type(), " ", stored.sizes(),
                   ", expected pairs for ", dtype, " ", sizes);
  const Tensor numbers = rush::empty(sizes, dtype);
  std::memcpy(numbers.data_ptr(), stored.data_ptr(), static_cast<size_t>(stored.nbytes()));
  return numbers;
}

Value ArgumentReader::read(const json& value, const std::string& type) {
  switch (value.type()) {
    case json::value_t::null: return {};
    case json::value_t::boolean: return value.get<bool>();
    case json::value_t::number_integer:
    case json::value_t::number_unsigned: return value.get<int64_t>();
    case json::value_t::number_float: return value.get<double>();
    case json::value_t::string: return value.get<std::string>();
    case json::value_t::array: return read_list(value, type);
    default: return read_object(value);
  }
}

Value ArgumentReader::read_list(const json& list, const std::string& type) {
  if (type.starts_with("Tensor?[")) {
    std::vector<std::optional<Tensor>> tensors;
    for (const json& each : list) {
      tensors.push_back(each.is_null() ? std::nullopt : std::optional<Tensor>(read_tensor(each)));
    }
    return tensors;
  }
  if (type.starts_with("Tensor[")) {
    std::vector<Tensor> tensors;
    for (const json& each : list) tensors.push_back(read_tensor(each));
    return tensors;
  }
  if (type.starts_with("float[")) return list.get<std::vector<double>>();
  if (type.starts_with("bool[")) return list.get<std::vector<bool>>();
  RUSH_CHECK_VALUE(type.starts_with("int["), "a list where the schema takes ", type);
  return list.get<std::vector<int64_t>>();
}

Value ArgumentReader::read_object(const json& object) {
  if (object.contains("tensor")) return read_tensor(object);
  if (object.contains("float")) return special_float(object["float"]);
  if (object.contains("complex")) return rush::complex<double>(object["complex"][0], object["complex"][1]);
  if (object.contains("dtype")) return dtype_named(object["dtype"]);
  if (object.contains("layout")) return named<rush::Layout>(object["layout"], {{"strided", rush::kStrided}});
  if (object.contains("device")) return device_;
  if (object.contains("memory_format")) {
    using rush::MemoryFormat;
    return named<MemoryFormat>(object["memory_format"], {{"contiguous_format", MemoryFormat::Contiguous},
                                                         {"preserve_format", MemoryFormat::Preserve},
                                                         {"channels_last", MemoryFormat::ChannelsLast},
                                                         {"channels_last_3d", MemoryFormat::ChannelsLast3d}});
  }
  RUSH_THROW(rush::ValueError, "an argument of unknown form: ", object.dump());
}

Tensor ArgumentReader::read_tensor(const json& spec) {
  Tensor tensor = file_.tensor(spec);
  if (spec.contains("strides")) {
    tensor = with_strides(tensor, spec["strides"].get<std::vector<int64_t>>(), device_);
  } else if (file_.order() != ArgumentOrder::RowMajor) {
    tensor = with_strides(tensor, strides_in(file_.order(), tensor.sizes()), device_);
  } else {
    tensor = tensor.to(device_);
  }
  tensors_.emplace_back(spec["tensor"].get<std::string>(), tensor);
  if (spec.value("grad", false)) {
    tensor.requires_grad_();
    differentiated_.push_back(tensors_.back());
  }
  return tensor;
}

}  // namespace conformance
