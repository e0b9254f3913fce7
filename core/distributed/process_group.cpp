#include "core/distributed/process_group.h"

#include <algorithm>
#include <numeric>

#include "core/distributed/init.h"

namespace rush::distributed {

ProcessGroup::ProcessGroup(std::string name, std::vector<int> ranks, int rank)
    : name_(std::move(name)), ranks_(std::move(ranks)), rank_(rank) {}

ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank_of(const char* who, int global_rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), global_rank);
  RUSH_CHECK_VALUE(found != ranks_.end(), who, ": process ", global_rank, " is not among the ", size(),
                   " of the group '", name_, "'");
  return static_cast<int>(found - ranks_.begin());
}

int ProcessGroup::place_in(const std::vector<int>& ranks) const {
  const auto found = std::find(ranks.begin(), ranks.end(), ranks_[static_cast<size_t>(rank_)]);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::vector<Group>& detail::groups() {
  // Never destroyed: where a program ends without destroy_process_group, nothing waits for what its groups were doing.
  static auto& all = *new std::vector<Group>;
  return all;
}

std::vector<int> detail::ranks_of_world(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void detail::check_member(const char* who, const Group& group) {
  RUSH_CHECK_DISTRIBUTED(group, who, ": this process is no member of the group");
}

std::map<std::string, GroupFactory, std::less<>>& detail::registered_backends() {
  static auto& known = *new std::map<std::string, GroupFactory, std::less<>>();
  return known;
}

// Not in init.cpp, so that who registers a backend does not bring MPI with it.
void register_backend(std::string name, GroupFactory make) {
  const bool is_own = name == "mpi" || name == "fake";
  RUSH_CHECK_VALUE(!is_own && !detail::registered_backends().contains(name), "register_backend: there is a backend '",
                   name, "' already");
  detail::registered_backends().emplace(std::move(name), std::move(make));
}

Group world() {
  RUSH_CHECK_DISTRIBUTED(!detail::groups().empty(),
                         "there is no process group: call init_process_group first, and no collective after "
                         "destroy_process_group");
  return detail::groups().front();
}

bool is_initialized() { return !detail::groups().empty(); }

int get_rank(const Group& group) { return group ? group->rank() : -1; }
int get_rank() { return world()->rank(); }
int get_world_size(const Group& group) { return group ? group->size() : -1; }
int get_world_size() { return world()->size(); }

Group group_named(std::string_view name) {
  world();
  for (const Group& group : detail::groups()) {
    if (group->name() == name) return group;
  }
  RUSH_THROW(DistributedError, "there is no process group '", std::string(name), "' that this process is a member of");
}

}  // namespace rush::distributed
