// A folder that all processes of a test share.
#pragma once
#include <cstring>
#include <optional>

#include "core/distributed/collectives.h"
#include "core/ops/basic.h"
#include "tests/temporary_folder.h"

namespace rush::testing {

// Made and removed by the first process. Every process makes one, and leaves its scope.
class SharedFolder {
 public:
  SharedFolder() {
    constexpr int64_t kLongest = 4096;
    const Tensor path = zeros({kLongest}, kUInt8);
    char* const text = static_cast<char*>(path.data_ptr());
    if (distributed::get_rank() == 0) std::strcpy(text, own_.emplace().path().c_str());
    distributed::broadcast(path, 0);
    path_ = text;
  }
  SharedFolder(const SharedFolder&) = delete;
  ~SharedFolder() { distributed::barrier(); }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::optional<TemporaryFolder> own_;
  std::string path_;
};

}  // namespace rush::testing
