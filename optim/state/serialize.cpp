#include "optim/state/serialize.h"

#include "core/io/pt.h"
#include "optim/state/state_file.h"

namespace rush {

namespace {

// Gives `value` the data of `read`.
void take(Tensor& value, Tensor read) {
  if (!value.defined() || value.is_view() || !value.is_leaf()) {
    value = std::move(read);
    return;
  }
  value.set_requires_grad(false);
  value.set_data(read.detach());
  value.set_requires_grad(read.requires_grad());
}

// Of a file that PyTorch wrote.
optim::StateDict state_dict_of(const std::string& path) {
  optim::StateDict dict("state");
  for (auto& [name, tensor] : io::load_pt(path)) {
    RUSH_CHECK_IO(!dict.contains(name), path, ": two of its tensors are named '", name, "'");
    dict.insert(name, std::move(tensor));
  }
  return dict;
}

Tensor moved(const Tensor& tensor, const std::optional<Device>& device) {
  return device ? tensor.detach().to(*device).requires_grad_(tensor.requires_grad()) : tensor;
}

}  // namespace

void save(const Tensor& value, const std::string& path) {
  RUSH_CHECK_VALUE(value.defined(), "save: the tensor is undefined");
  optim::write_state(path, "tensor", {{"0", value}});
}

void save(const std::vector<Tensor>& values, const std::string& path) {
  optim::StateDict dict("state");
  for (size_t i = 0; i < values.size(); ++i) {
    RUSH_CHECK_VALUE(values[i].defined(), "save: tensor ", i, " is undefined");
    dict.insert(str(i), values[i]);
  }
  optim::write_state(path, "tensors", dict);
}

void save(const nn::Module& module, const std::string& path) { optim::write_state(path, "module", state_dict(module)); }

void load(Tensor& value, const std::string& path, std::optional<Device> device) {
  const optim::StateDict dict = optim::read_state(path, "tensor");
  RUSH_CHECK_IO(dict.size() == 1, path, ": expected one tensor, it holds ", dict.size());
  take(value, moved(dict[0].value(), device));
}

void load(std::vector<Tensor>& values, const std::string& path, std::optional<Device> device) {
  const optim::StateDict dict = optim::read_state(path, "tensors");
  std::vector<Tensor> read;
  for (size_t i = 0; i < dict.size(); ++i) {
    const Tensor* found = dict.find(str(i));
    RUSH_CHECK_IO(found, path, ": expected tensors 0 to ", dict.size() - 1, ", it has no ", i);
    read.push_back(moved(*found, device));
  }
  values = std::move(read);
}

void load(nn::Module& module, const std::string& path, std::optional<Device> device) {
  const optim::StateDict dict = io::is_pt(path) ? state_dict_of(path) : optim::read_state(path, "module");
  try {
    load_state_dict(module, dict);
  } catch (const ValueError& error) {
    detail::rethrow_misfit(path, error);
  }
  if (device) module.to(*device);
}

namespace detail {

void save_state(const optim::StateDict& dict, const std::string& path) { optim::write_state(path, "state", dict); }

optim::StateDict load_state(const std::string& path) { return optim::read_state(path, "state"); }

void rethrow_misfit(const std::string& path, const ValueError& error) {
  RUSH_THROW(ValueError, path, ": ", error.msg());
}

}  // namespace detail

}  // namespace rush
