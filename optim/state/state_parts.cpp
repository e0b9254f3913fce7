#include "optim/state/state_parts.h"

#include <algorithm>

#include "core/ops/factory/factories.h"

namespace rush::optim {

namespace {

using distributed::TensorPart;

constexpr std::string_view kGroups = "param_groups.", kStates = "state.", kNumbers = ".params";

// The part of each of the optimiser's parameters.
std::vector<const TensorPart*> parts_of(const Optimizer& optimizer, const std::vector<TensorPart>& params) {
  std::vector<const TensorPart*> found;
  for (const Tensor& param : optimizer.parameters()) {
    const auto part = std::ranges::find_if(params, [&](const TensorPart& each) {
      const bool shares_memory = param.numel() > 0 && each.local.defined() && each.local.numel() > 0 &&
                                 each.local.data_ptr() == param.data_ptr() && each.local.sizes() == param.sizes();
      return shares_memory || each.local.is_same(param);
    });
    RUSH_CHECK_VALUE(part != params.end(), "state_parts: the optimiser's parameter ", found.size(), " of shape ",
                     param.sizes(), " is in none of ", params.size(), " parts");
    found.push_back(&*part);
  }
  return found;
}

// "3.exp_avg" as the state "exp_avg" of the parameter 3.
std::pair<size_t, std::string> split_number(std::string_view key) {
  const size_t dot = key.find('.');
  return {std::stoul(std::string(key.substr(0, dot))), std::string(key.substr(dot + 1))};
}

TensorPart state_part(const std::string& name, const Tensor& state, const TensorPart& param) {
  if (state.sizes() == param.local.sizes()) return {name, state, param.sizes, param.offsets};
  const bool is_split = param.local.sizes() != IntArrayRef(param.sizes);
  RUSH_CHECK_VALUE(!is_split || state.dim() == 0, "state_parts: ", name, " has shape ", state.sizes(),
                   ", this process's part of the parameter ", param.local.sizes(), " of ", IntArrayRef(param.sizes),
                   "; the state of a parameter that is split has its shape, or none");
  return TensorPart::whole(name, state);
}

}  // namespace

std::vector<TensorPart> state_parts(const Optimizer& optimizer, const std::vector<TensorPart>& params,
                                    const std::string& prefix) {
  const std::vector<const TensorPart*> of_params = parts_of(optimizer, params);
  std::vector<TensorPart> parts;
  for (const StateDict::Item& item : optimizer.state_dict()) {
    const std::string_view key = item.key();
    if (key.starts_with(kStates)) {
      const auto [number, rest] = split_number(key.substr(kStates.size()));
      const TensorPart& param = *of_params[number];
      parts.push_back(state_part(str(prefix, kStates, param.name, ".", rest), item.value(), param));
    } else if (!key.ends_with(kNumbers)) {
      parts.push_back(TensorPart::whole(prefix + item.key(), item.value()));
    }
  }
  return parts;
}

void load_state_parts(const std::string& folder, Optimizer& optimizer, const std::vector<TensorPart>& params,
                      const std::string& prefix) {
  distributed::CheckpointFolder checkpoint(folder);
  StateDict dict("state");
  std::vector<TensorPart> parts;
  // What the checkpoint has under this name: as the parameter's part where it has the parameter's shape.
  const auto add = [&](const std::string& name, const std::string& key, const TensorPart* param) {
    const io::SafetensorsFile::Entry& entry = *checkpoint.find(name);
    const bool is_split = param && IntArrayRef(entry.shape) == IntArrayRef(param->sizes);
    const Tensor local = empty(is_split ? param->local.sizes() : IntArrayRef(entry.shape), entry.dtype);
    parts.push_back(is_split ? TensorPart{name, local, param->sizes, param->offsets} : TensorPart::whole(name, local));
    dict.insert(key, local);
  };
  const auto add_all = [&](const std::string& begin, const std::string& key, const TensorPart* param) {
    const auto& files = checkpoint.files();
    for (auto next = files.lower_bound(begin); next != files.end() && next->first.starts_with(begin); ++next) {
      const std::string rest = next->first.substr(begin.size());
      // With a dot, it is a state of a parameter whose name goes on so.
      if (!param || rest.find('.') == rest.npos) add(next->first, key + rest, param);
    }
  };

  for (const StateDict::Item& item : optimizer.state_dict()) {
    if (item.key().starts_with(kGroups) && item.key().ends_with(kNumbers)) dict.insert(item.key(), item.value());
  }
  add_all(str(prefix, kGroups), std::string(kGroups), nullptr);
  const std::vector<const TensorPart*> of_params = parts_of(optimizer, params);
  for (size_t i = 0; i < of_params.size(); ++i) {
    add_all(str(prefix, kStates, of_params[i]->name, "."), str(kStates, i, "."), of_params[i]);
  }
  checkpoint.load(parts);
  optimizer.load_state_dict(dict);
}

}  // namespace rush::optim
