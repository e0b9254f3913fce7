#include "nn/state/archive.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/io/safetensors.h"
#include "core/ops/view/copy.h"
#include "nn/state/temporary_file.h"

namespace rush::serialize {

static io::NamedValues read_values(const std::string& filename, const std::optional<Device>& device) {
  io::NamedValues values;
  if (io::is_pt(filename)) {
    values = io::load_pt_values(filename);
  } else {
    for (auto& [name, tensor] : io::load_safetensors(filename)) values.emplace_back(name, std::move(tensor));
  }
  for (auto& [name, value] : values) {
    if (device && value.is<Tensor>()) value = value.as<Tensor>().to(*device);
  }
  return values;
}

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool /*is_buffer*/) {
  RUSH_CHECK_VALUE(tensor.defined(), "OutputArchive: the tensor '", key, "' is undefined");
  write(key, Value(tensor.detach()));
}

void OutputArchive::write(const std::string& key, const Value& value) {
  const bool there = std::any_of(values_.begin(), values_.end(), [&](const auto& item) { return item.first == key; });
  RUSH_CHECK_VALUE(!there, "OutputArchive: '", key, "' is there already");
  values_.emplace_back(key, value);
}

void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  const io::NamedValues values = nested.values_;  // a copy: an archive may be written into itself
  for (const auto& [name, value] : values) write(key + "." + name, value);
}

void OutputArchive::save_to(const std::string& filename) const { io::save_pt_values(filename, values_); }

void OutputArchive::save_to(std::ostream& stream) const {
  const TemporaryFile file;
  save_to(file.path());
  file.copy_to(stream);
}

void OutputArchive::save_to(const ByteWriter& writer) const {
  const TemporaryFile file;
  save_to(file.path());
  file.copy_to(writer);
}

void InputArchive::load_from(const std::string& filename, std::optional<Device> device) {
  values_ = read_values(filename, device);
  prefix_.clear();
}

void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  const TemporaryFile file;
  file.copy_from(stream);
  load_from(file.path(), device);
}

void InputArchive::load_from(const char* data, size_t size, std::optional<Device> device) {
  const TemporaryFile file;
  file.copy_from(data, size);
  load_from(file.path(), device);
}

void InputArchive::load_from(const ByteReader& reader, const std::function<size_t()>& size,
                             std::optional<Device> device) {
  const TemporaryFile file;
  file.copy_from(reader, size());
  load_from(file.path(), device);
}

const Value* InputArchive::find(const std::string& key) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const auto& item) { return item.first == key; });
  return found == values_.end() ? nullptr : &found->second;
}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool /*is_buffer*/) const {
  const Value* value = find(key);
  if (!value || !value->is<Tensor>()) return false;
  const Tensor& source = value->as<Tensor>();
  if (!tensor.defined()) {
    tensor = source.clone();
    return true;
  }
  RUSH_CHECK_VALUE(tensor.sizes() == source.sizes(), "InputArchive: '", prefix_, key, "' has shape ", source.sizes(),
                   ", expected ", tensor.sizes());
  const NoGradGuard no_grad;
  tensor.detach().copy_(source);
  return true;
}

bool InputArchive::try_read(const std::string& key, Value& value) const {
  const Value* found = find(key);
  if (found) value = *found;
  return found != nullptr;
}

bool InputArchive::try_read(const std::string& key, InputArchive& nested) const {
  InputArchive inner;
  inner.prefix_ = prefix_ + key + ".";
  const std::string start = key + ".";
  for (const auto& [name, value] : values_) {
    if (name.starts_with(start)) inner.values_.emplace_back(name.substr(start.size()), value);
  }
  if (inner.values_.empty()) return false;
  nested = std::move(inner);
  return true;
}

void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) const {
  RUSH_CHECK_VALUE(try_read(key, tensor, is_buffer), "InputArchive: there is no tensor '", prefix_, key, "'");
}
void InputArchive::read(const std::string& key, Value& value) const {
  RUSH_CHECK_VALUE(try_read(key, value), "InputArchive: there is no value '", prefix_, key, "'");
}
void InputArchive::read(const std::string& key, InputArchive& nested) const {
  RUSH_CHECK_VALUE(try_read(key, nested), "InputArchive: there is no archive '", prefix_, key, "'");
}

io::NamedTensors InputArchive::tensors() const {
  io::NamedTensors all;
  for (const auto& [name, value] : values_) {
    if (value.is<Tensor>()) all.emplace_back(name, value.as<Tensor>());
  }
  return all;
}

std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) {
    const std::string first = name.substr(0, name.find('.'));
    if (std::find(names.begin(), names.end(), first) == names.end()) names.push_back(first);
  }
  return names;
}

void save_state(OutputArchive& archive, const StateDict& dict) {
  for (const auto& item : dict) archive.write(item.key(), item.value());
}

StateDict load_state(const InputArchive& archive) { return load_state(archive, "Key", {""}); }

StateDict load_state(const InputArchive& archive, const char* what,
                     std::initializer_list<std::string_view> beginnings) {
  StateDict dict(what);
  for (auto& [name, tensor] : archive.tensors()) {
    const auto begins = [&name = name](std::string_view text) { return name.starts_with(text); };
    if (std::any_of(beginnings.begin(), beginnings.end(), begins)) dict.insert(name, std::move(tensor));
  }
  return dict;
}

}  // namespace rush::serialize
