#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace rush::io {
namespace {

constexpr mode_t kNewFileMode = 0666;  // less the process's umask

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where symbolic links lead; a path that does not exist yet stays as it is.
std::string follow_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string target = resolved ? resolved : path;
  std::free(resolved);
  return target;
}

// A name that no other writer uses, in this process or another: calls `create` with one after the other until it does
// not find that the file exists.
template <class Create>
std::string create_unique(const std::string& target, const Create& create) {
  static std::atomic<unsigned> serial{0};
  std::string name;
  do {
    name = str(target, ".tmp-", ::getpid(), "-", serial++);
  } while (!create(name.c_str()) && errno == EEXIST);
  return name;
}

std::string link_of(const FileDescriptor& file) { return str("/proc/self/fd/", file.get()); }

// A file that has no name yet: a process that is killed leaves nothing behind. Invalid where the file system knows no
// such files, or nothing could name it later.
FileDescriptor create_nameless(const std::string& folder) {
#ifdef O_TMPFILE
  FileDescriptor file(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kNewFileMode));
  if (file.valid() && ::access(link_of(file).c_str(), F_OK) == 0) return file;
#endif
  return FileDescriptor();
}

// A rename is on disk only when its folder is. File systems that cannot flush a folder say so with EINVAL.
void flush_folder(const std::string& path, const std::string& folder) {
  FileDescriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return;  // a folder that may be written but not read: nothing more can be done
  RUSH_CHECK_IO(::fsync(handle.get()) == 0 || errno == EINVAL, path,
                ": cannot flush its folder: ", std::strerror(errno));
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(follow_links(path_)) {
  struct stat old;
  bool exists = ::stat(target_.c_str(), &old) == 0;
  RUSH_CHECK_IO(!exists || S_ISREG(old.st_mode), path_, ": cannot replace: not a regular file");

  file_ = create_nameless(folder_of(target_));
  if (!file_.valid()) {
    temporary_path_ = create_unique(target_, [&](const char* name) {
      file_ = FileDescriptor(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode));
      return file_.valid();
    });
  }
  if (!file_.valid()) {
    temporary_path_.clear();
    throw IOError(str(path_, ": cannot write in its folder: ", std::strerror(errno)));
  }
  // Best effort: on a file system without permissions the content still matters more than its mode.
  if (exists) (void)::fchmod(file_.get(), old.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

void AtomicFile::write(const void* bytes, size_t size) {
  RUSH_CHECK_IO(file_.valid(), path_, ": written to after commit");
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    ssize_t done = ::write(file_.get(), next, size);
    if (done < 0 && errno == EINTR) continue;
    RUSH_CHECK_IO(done >= 0, path_, ": cannot write: ", std::strerror(errno));
    next += done;
    size -= static_cast<size_t>(done);
  }
}

void AtomicFile::seek(uint64_t offset) {
  RUSH_CHECK_IO(::lseek(file_.get(), static_cast<off_t>(offset), SEEK_SET) >= 0, path_,
                ": cannot seek: ", std::strerror(errno));
}

void AtomicFile::commit() {
  RUSH_CHECK_IO(file_.valid(), path_, ": committed twice");
  RUSH_CHECK_IO(::fsync(file_.get()) == 0, path_, ": cannot flush to disk: ", std::strerror(errno));
  if (temporary_path_.empty()) {
    const std::string nameless = link_of(file_);
    bool named = false;
    std::string name = create_unique(target_, [&](const char* candidate) {
      named = ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, candidate, AT_SYMLINK_FOLLOW) == 0;
      return named;
    });
    RUSH_CHECK_IO(named, path_, ": cannot write in its folder: ", std::strerror(errno));
    temporary_path_ = std::move(name);
  }
  RUSH_CHECK_IO(::close(file_.release()) == 0, path_, ": cannot close: ", std::strerror(errno));
  RUSH_CHECK_IO(::rename(temporary_path_.c_str(), target_.c_str()) == 0, path_,
                ": cannot rename into place: ", std::strerror(errno));
  temporary_path_.clear();
  flush_folder(path_, folder_of(target_));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace rush::io
