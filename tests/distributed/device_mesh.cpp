// Meshes of processes: who is in which group.
#include "core/distributed/device_mesh.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/distributed/collectives.h"
#include "core/ops/basic.h"

namespace {

using namespace rush;
using namespace rush::distributed;

// The sum of the ranks of a group's members, by a collective.
int64_t sum_of_ranks(const Group& group) {
  Tensor sum = full({1}, get_rank(), kInt64);
  all_reduce(sum, ReduceOp::SUM, group);
  return sum.item<int64_t>();
}

TEST_CASE("each line of a mesh is a group, in the order of its dimension") {
  const int size = get_world_size(), rank = get_rank();
  const DeviceMesh mesh = init_device_mesh({size / 2, 2}, {"dp", "tp"});
  CHECK(mesh.str() == str("dp ", size / 2, " x tp 2"));
  CHECK(mesh.coordinate("dp") == rank / 2);
  CHECK(mesh.coordinate("tp") == rank % 2);
  CHECK(mesh.group("tp")->ranks() == std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1});
  CHECK(mesh.group("tp")->rank() == rank % 2);
  std::vector<int> column;
  for (int i = 0; i < size / 2; ++i) column.push_back(2 * i + rank % 2);
  CHECK(mesh.group("dp")->ranks() == column);
  CHECK(sum_of_ranks(mesh.group("tp")) == rank / 2 * 4 + 1);
  CHECK(sum_of_ranks(mesh.group("dp")) == std::accumulate(column.begin(), column.end(), 0));
}

TEST_CASE("dimensions together are a group, made once; those that a mesh lacks have one process") {
  const int size = get_world_size();
  const DeviceMesh mesh = init_device_mesh({2, size / 2, 1}, {"pp", "dp", "tp"});
  const Group all = mesh.flatten({"dp", "pp"});
  CHECK(all->size() == size);
  CHECK(all == mesh.flatten({"pp", "dp"}));
  CHECK(mesh.flatten({"dp", "cp"}) == mesh.group("dp"));
  CHECK(mesh.flatten({"tp", "dp"})->ranks() == mesh.group("dp")->ranks());
  CHECK(mesh.flatten({})->ranks() == std::vector<int>{get_rank()});
  CHECK(sum_of_ranks(all) == size * (size - 1) / 2);
  CHECK(mesh.size("cp") == 1);
  CHECK(mesh.coordinate("cp") == 0);
  CHECK_FALSE(mesh.has("cp"));
}

TEST_CASE("a mesh of another number of processes is refused, and so are its other mistakes") {
  const int size = get_world_size();
  CHECK_THROWS_WITH_AS(
      init_device_mesh({size, 2}, {"dp", "tp"}),
      doctest::Contains(str("dp ", size, " x tp 2 are ", 2 * size, " processes, and there are ", size).c_str()),
      ValueError);
  CHECK_THROWS_WITH_AS(init_device_mesh({size, 1}, {"dp", "dp"}), doctest::Contains("'dp' is there twice"), ValueError);
  CHECK_THROWS_WITH_AS(init_device_mesh({size, 0}, {"dp", "tp"}), doctest::Contains("'tp' has the size 0"), ValueError);
  CHECK_THROWS_WITH_AS(init_device_mesh({size}, {"dp", "tp"}), doctest::Contains("1 sizes and 2 names"), ValueError);
  const DeviceMesh mesh = init_device_mesh({size}, {"dp"});
  CHECK_THROWS_WITH_AS(mesh.group("tp"), doctest::Contains("no dimension 'tp' in dp "), ValueError);
  CHECK_THROWS_WITH_AS(mesh.flatten({"dp", "dp"}), doctest::Contains("'dp' is there twice"), ValueError);
}

}  // namespace
