#include "core/io/cache_folder.h"

#include <cstdlib>

namespace rush::io {

std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = variable("RUSH_CACHE_DIR"); !own.empty()) return own;
  if (const std::string all = variable("XDG_CACHE_HOME"); !all.empty()) return all + "/rushlight";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/rushlight";
}

}  // namespace rush::io
