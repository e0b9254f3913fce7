#include "core/library/file_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "core/error/error.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_folder.h"
#include "core/io/md5.h"
#include "core/io/read_file.h"

namespace rush::library {

namespace {

constexpr std::string_view kMark = "rushlight-md5:";
constexpr size_t kTail = kMark.size() + 32;

std::string tail_of(std::string_view bytes) { return std::string(kMark) + io::md5_hex(bytes); }

}  // namespace

FileCache::FileCache(const std::string& entry) {
  const std::string root = io::cache_folder();
  if (root.empty()) {
    reason_ = "neither RUSH_CACHE_DIR nor HOME is set";
    return;
  }
  folder_ = root + "/" + entry;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    reason_ = str(folder_, ": ", error.message());
    return;
  }
  lock_ = io::FileDescriptor(::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  while (lock_.valid() && ::flock(lock_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) lock_ = io::FileDescriptor();
  }
  if (!lock_.valid()) reason_ = str(folder_, ": ", std::strerror(errno));
}

std::optional<std::string> FileCache::read(const std::string& name) const {
  const std::string path = path_of(name);
  std::error_code missing;
  if (folder_.empty() || !std::filesystem::exists(path, missing)) return std::nullopt;
  try {
    const std::vector<uint8_t> bytes = io::read_file(path);
    if (bytes.size() < kTail) return std::nullopt;
    std::string content(bytes.begin(), bytes.end() - kTail);
    const bool is_whole = std::ranges::equal(std::span(bytes).last<kTail>(), tail_of(content));
    return is_whole ? std::optional(std::move(content)) : std::nullopt;
  } catch (const IOError&) {
    return std::nullopt;
  }
}

bool FileCache::keep(const std::string& name, std::string_view bytes) {
  if (!lock_.valid()) return false;
  try {
    io::AtomicFile file(path_of(name));
    file.write(bytes);
    file.write(tail_of(bytes));
    file.commit();
    return true;
  } catch (const IOError& error) {
    reason_ = error.msg();
    return false;
  }
}

}  // namespace rush::library
