#include "torch/serialize.h"

#include <sstream>

namespace rush {

namespace {

// Of names 0, 1, 2, ...: a list, as a file's reader names its elements.
bool is_tensor_list(const io::NamedValues& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].first != std::to_string(i) || !values[i].second.is<Tensor>()) return false;
  }
  return true;
}

c10::IValue tensor_list(const io::NamedValues& values) {
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : values) tensors.push_back(value.as<Tensor>());
  return tensors;
}

c10::IValue dict_of(const io::NamedValues& values) {
  const c10::impl::GenericDict dict;
  for (const auto& [name, value] : values) dict.insert(name, value);
  return dict;
}

}  // namespace

std::vector<char> pickle_save(const c10::IValue& value) {
  serialize::OutputArchive archive;
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) archive.write(entry.key().toStringRef(), entry.value());
  } else {
    archive.write("", value);
  }
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = std::move(stream).str();
  return {bytes.begin(), bytes.end()};
}
c10::IValue pickle_load(const std::vector<char>& data) {
  serialize::InputArchive archive;
  archive.load_from(data.data(), data.size());
  const io::NamedValues& values = archive.values();
  if (values.size() == 1 && values[0].first.empty()) return values[0].second;
  return !values.empty() && is_tensor_list(values) ? tensor_list(values) : dict_of(values);
}

}  // namespace rush
