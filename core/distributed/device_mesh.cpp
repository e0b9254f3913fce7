#include "core/distributed/device_mesh.h"

#include <algorithm>

#include "core/distributed/init.h"
#include "core/size_arithmetic.h"

namespace rush::distributed {

const std::vector<DeviceMesh::Dim>& DeviceMesh::dims() const {
  static const std::vector<Dim> none;
  return state_ ? state_->dims : none;
}

const DeviceMesh::Dim& DeviceMesh::find(std::string_view name) const {
  static const Dim none;
  const auto found = std::ranges::find(dims(), name, &Dim::name);
  return found == dims().end() ? none : *found;
}

const Group& DeviceMesh::group(std::string_view dim) const {
  RUSH_CHECK_VALUE(has(dim), "DeviceMesh: there is no dimension '", std::string(dim), "' in ", str());
  return find(dim).group;
}

std::string DeviceMesh::str() const {
  std::string text;
  for (const Dim& dim : dims()) text += rush::str(text.empty() ? "" : " x ", dim.name, ' ', dim.size);
  return text.empty() ? "a mesh without dimensions" : text;
}

Group DeviceMesh::group_along(const std::vector<Dim>& all, const std::vector<const Dim*>& along) {
  const auto is_along = [&](const Dim& dim) { return std::find(along.begin(), along.end(), &dim) != along.end(); };
  // Rank 0 and what one step in each dimension adds, dimension by dimension: of those along which the group lies, and
  // of the others, of whose places each has a group of its own.
  std::vector<int> members{0}, origins{0};
  for (const Dim& dim : all) {
    std::vector<int>& ranks = is_along(dim) ? members : origins;
    std::vector<int> grown;
    for (const int rank : ranks) {
      for (int i = 0; i < dim.size; ++i) grown.push_back(rank + i * dim.stride);
    }
    ranks = std::move(grown);
  }
  Group own;
  for (const int origin : origins) {
    std::vector<int> ranks = members;
    for (int& rank : ranks) rank += origin;
    if (const Group group = new_group(ranks)) own = group;
  }
  return own;
}

Group DeviceMesh::flatten(const std::vector<std::string>& names) const {
  RUSH_CHECK_VALUE(state_, "DeviceMesh: flatten of no mesh");
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    RUSH_CHECK_VALUE(std::count(names.begin(), names.end(), name) == 1, "DeviceMesh: the dimension '", name,
                     "' is there twice");
    if (has(name)) wanted.push_back(name);
  }
  if (wanted.size() == 1) return group(wanted[0]);
  std::sort(wanted.begin(), wanted.end());
  if (const auto known = state_->flattened.find(wanted); known != state_->flattened.end()) return known->second;
  std::vector<const Dim*> along;
  for (const std::string& name : wanted) along.push_back(&find(name));
  return state_->flattened[wanted] = group_along(state_->dims, along);
}

DeviceMesh init_device_mesh(const std::vector<int>& sizes, const std::vector<std::string>& names) {
  RUSH_CHECK_VALUE(sizes.size() == names.size(), "init_device_mesh: ", sizes.size(), " sizes and ", names.size(),
                   " names");
  int64_t processes = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    RUSH_CHECK_VALUE(sizes[i] >= 1, "init_device_mesh: the dimension '", names[i], "' has the size ", sizes[i]);
    RUSH_CHECK_VALUE(std::count(names.begin(), names.end(), names[i]) == 1, "init_device_mesh: the dimension '",
                     names[i], "' is there twice");
    processes = multiply_sizes("init_device_mesh", processes, sizes[i]);
  }
  DeviceMesh mesh;
  mesh.state_ = std::make_shared<DeviceMesh::State>();
  int stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) {
    mesh.state_->dims.insert(mesh.state_->dims.begin(),
                             {names[i], sizes[i], stride, get_rank() / stride % sizes[i], {}});
  }
  RUSH_CHECK_VALUE(processes == get_world_size(), "init_device_mesh: ", mesh.str(), " are ", processes,
                   " processes, and there are ", get_world_size());
  for (DeviceMesh::Dim& dim : mesh.state_->dims) dim.group = DeviceMesh::group_along(mesh.state_->dims, {&dim});
  return mesh;
}

}  // namespace rush::distributed
