// Variables of the environment that have another value in a test.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "tests/temporary_folder.h"

namespace rush::testing {

// A variable of the environment has this value until the end of the scope.
class EnvironmentGuard {
 public:
  EnvironmentGuard(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  EnvironmentGuard(const EnvironmentGuard&) = delete;
  ~EnvironmentGuard() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// An empty cache of what took long to make, until the end of the scope.
struct EmptyCache {
  TemporaryFolder folder;
  EnvironmentGuard guard{"RUSH_CACHE_DIR", folder.path()};
};

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace rush::testing
