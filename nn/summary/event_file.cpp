#include "nn/summary/event_file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error/error.h"

namespace rush::summary {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 20;  // bytes
constexpr mode_t kEventFileMode = 0666;            // less the process's umask

// CRC-32C (Castagnoli), the lowest bit first.
constexpr std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0u);
    table[byte] = value;
  }
  return table;
}

// The checksum of a TFRecord, which is rotated and shifted so that it may itself be part of checked data.
uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = crc32c_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

// Length, its checksum, data, their checksum.
std::string record_of(std::string_view data) {
  std::string record;
  io::put_little_endian(record, data.size(), 8);
  io::put_little_endian(record, masked_crc32c(record), 4);
  record += data;
  io::put_little_endian(record, masked_crc32c(data), 4);
  return record;
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return host;
}

EventFile::EventFile(const std::string& folder, const std::string& suffix) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  RUSH_CHECK_IO(!error, folder, ": cannot make this folder: ", error.message());
  const std::string start =
      str(folder, "/events.out.tfevents.", static_cast<int64_t>(wall_time()), ".", host_name(), ".", ::getpid(), ".");
  for (int number = 0; !file_.valid(); ++number) {
    path_ = str(start, number, suffix);
    file_ =
        io::FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kEventFileMode));
    RUSH_CHECK_IO(file_.valid() || errno == EEXIST, path_, ": cannot make this file: ", std::strerror(errno));
  }
  add(ProtoMessage().float64(1, wall_time()).text(3, "brain.Event:2"));
}

void EventFile::add(const ProtoMessage& event) {
  const std::string record = record_of(event.bytes());
  const std::lock_guard lock(mutex_);
  RUSH_CHECK(file_.valid(), path_, ": an event was added after close()");
  if (waiting_.size() > kMostWaiting) flush_locked();
  waiting_ += record;
  write_waiting();
}

// 0, or the errno that says why bytes still wait.
int EventFile::write_waiting() {
  size_t written = 0;
  int problem = 0;
  while (written < waiting_.size() && problem == 0) {
    const ssize_t count = ::write(file_.get(), waiting_.data() + written, waiting_.size() - written);
    if (count >= 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  waiting_.erase(0, written);
  return problem;
}

void EventFile::flush_locked() {
  if (!file_.valid()) return;
  int problem = write_waiting();
  if (problem == 0 && ::fdatasync(file_.get()) != 0) problem = errno;
  RUSH_CHECK_IO(problem == 0, path_, ": cannot write: ", std::strerror(problem));
}

void EventFile::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void EventFile::close() {
  const std::lock_guard lock(mutex_);
  flush_locked();
  file_ = io::FileDescriptor();
}

}  // namespace rush::summary
