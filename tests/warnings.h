// Warnings: keeps what the thread is warned of for the time of a test.
#pragma once
#include <string>
#include <vector>

#include "core/error/warning.h"

namespace rush::testing {

class Warnings : private WarningHandler {
 public:
  const std::vector<std::string>& all() const { return all_; }
  // The newest; empty when there is none.
  std::string last() const { return all_.empty() ? std::string() : all_.back(); }

 private:
  void process(const Warning& warning) override { all_.push_back(warning.what()); }

  std::vector<std::string> all_;
  WarningUtils::WarningHandlerGuard guard_{this};
};

}  // namespace rush::testing
