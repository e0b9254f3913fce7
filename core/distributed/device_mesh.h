// DeviceMesh: all processes as an array, of which each line in each dimension is a group.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/distributed/process_group.h"

namespace rush::distributed {

// Note [Device meshes]
// A program that splits its work in several ways at once has a group for each way. Eight processes as a mesh of sizes
// {2, 4} and names {"dp", "tp"}:
//
//            tp 0  1  2  3
//     dp 0      0  1  2  3      rank = dp * 4 + tp: the last dimension varies fastest,
//     dp 1      4  5  6  7      and takes the processes of one machine, which exchange most
//
// Process 6 is at dp 1, tp 2. Its group "tp" is {4, 5, 6, 7}, its group "dp" {2, 6}. What is split among the processes
// of several dimensions has the group of all of those: flatten({"dp", "cp"}).

/// All processes as an array with named dimensions; a cheap handle. torch.distributed.DeviceMesh.
class DeviceMesh {
 public:
  /// One dimension. This process differs from the next one in it by `stride` ranks, and is at `coordinate`.
  struct Dim {
    std::string name;
    int size = 1, stride = 1, coordinate = 0;
    Group group;
  };

  DeviceMesh() = default;  // none

  explicit operator bool() const { return state_ != nullptr; }
  bool operator==(const DeviceMesh& other) const = default;  // made by the same call
  const std::vector<Dim>& dims() const;                      // none where there is no mesh
  /// The number of processes in a dimension; 1 for one that the mesh does not have, so that a program may ask for all
  /// that it knows. Names are those of init_device_mesh.
  int size(std::string_view dim) const { return find(dim).size; }
  /// This process's place in a dimension, from 0 on; 0 for one that the mesh does not have.
  int coordinate(std::string_view dim) const { return find(dim).coordinate; }
  bool has(std::string_view dim) const { return find(dim).group != nullptr; }
  /// The processes that differ from this one in that dimension alone, in its order. Throws ValueError for a dimension
  /// that the mesh does not have.
  const Group& group(std::string_view dim) const;
  std::string str() const;  // "dp 2 x tp 4"

  /// The processes that differ from this one in these dimensions alone, in the order of their ranks. Made at the first
  /// call, which every process makes; a dimension that the mesh does not have counts as one of size 1. Throws
  /// ValueError where a name is there twice.
  Group flatten(const std::vector<std::string>& dims) const;

 private:
  friend DeviceMesh init_device_mesh(const std::vector<int>& sizes, const std::vector<std::string>& names);
  struct State {
    std::vector<Dim> dims;
    std::map<std::vector<std::string>, Group> flattened;
  };
  const Dim& find(std::string_view name) const;  // one of no group where there is none
  // Those of the world that are at this process's place except in these dimensions.
  static Group group_along(const std::vector<Dim>& all, const std::vector<const Dim*>& along);

  std::shared_ptr<State> state_;
};

/// The mesh of all processes, whose numbers are `sizes` multiplied: Note [Device meshes]. Every process calls it with
/// the same arguments. Throws ValueError for sizes below 1, whose product is not the number of processes, and names
/// that are too few or there twice. torch.distributed.init_device_mesh.
DeviceMesh init_device_mesh(const std::vector<int>& sizes, const std::vector<std::string>& names);

}  // namespace rush::distributed
