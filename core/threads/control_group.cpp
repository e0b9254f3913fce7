#include "core/threads/control_group.h"

#include <fstream>

namespace rush {

// Lines of /proc/self/cgroup: "0::/group" of version 2, "4:cpu,memory:/group" of version 1.
std::vector<std::string> control_group_folders(const std::string& controller, const std::string& root) {
  std::vector<std::string> folders;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version_2 = controllers == ",,";
    if (!version_2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (version_2 ? "" : "/" + controller);
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      folders.push_back(mount + group);
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return folders;
}

}  // namespace rush
