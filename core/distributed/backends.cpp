// The backends that join from elsewhere. Apart from init.cpp, so that who registers one does not bring MPI with it.
#include "core/distributed/init.h"

namespace rush::distributed {

std::map<std::string, GroupFactory, std::less<>>& detail::registered_backends() {
  static auto& known = *new std::map<std::string, GroupFactory, std::less<>>();
  return known;
}

void register_backend(std::string name, GroupFactory make) {
  const bool is_own = name == "mpi" || name == "fake";
  RUSH_CHECK_VALUE(!is_own && !detail::registered_backends().contains(name), "register_backend: there is a backend '",
                   name, "' already");
  detail::registered_backends().emplace(std::move(name), std::move(make));
}

}  // namespace rush::distributed
