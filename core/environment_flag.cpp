#include "core/environment_flag.h"

#include <cstdlib>
#include <string_view>

#include "core/error/warning.h"

namespace rush {

bool environment_flag(const char* name, bool without) {
  const char* const value = std::getenv(name);
  if (!value || !*value) return without;
  const std::string_view text(value);
  if (text == "0" || text == "1") return text == "1";
  RUSH_WARN("the environment variable ", name, " is '", text, "', expected 0 or 1, and is taken for ", without ? 1 : 0);
  return without;
}

}  // namespace rush
