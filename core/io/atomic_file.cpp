#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error/error.h"

namespace rush::io {
namespace {

constexpr mode_t kNewFileMode = 0666;  // less the process's umask
constexpr int kMostLinks = 40;         // as Linux follows

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where symbolic links lead, also to a file that does not exist yet.
std::string follow_links(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(target, error)); ++links) {
    RUSH_CHECK_IO(links < kMostLinks, path, ": cannot write: more than ", kMostLinks, " symbolic links, or a circle");
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.native();
}

// Note [Leftovers of killed writers]
// A writer holds a lock (flock) on its temporary file for as long as that has a name. The kernel releases the lock when
// the process ends, however it ends, so a temporary file without a lock is a leftover. A process number in its name
// could not tell: numbers are given again, and those of another container or machine mean nothing here.
constexpr std::string_view kTemporary = ".rush-tmp-";  // then a serial number
constexpr int kMostNames = 1000;                       // of live writers of one path, and of leftovers nobody can lock

// Waits while another process looks whether this is a leftover. A file system without locks refuses, and then nobody
// takes a file there for a leftover.
void lock(const FileDescriptor& file) {
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

bool is_named(const FileDescriptor& file, const char* name) {
  struct stat open, named;
  return ::fstat(file.get(), &open) == 0 && ::lstat(name, &named) == 0 && S_ISREG(open.st_mode) &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Removes the temporary file `name`, unless its writer is alive.
bool remove_leftover(const char* name) {
  const FileDescriptor file(::open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Its writer may have renamed it meanwhile, and another may have taken the name.
  return is_named(file, name) && ::unlink(name) == 0;
}

bool is_temporary(std::string_view name) {
  const size_t at = name.rfind(kTemporary);
  if (at == name.npos) return false;
  const std::string_view serial = name.substr(at + kTemporary.size());
  return !serial.empty() && serial.find_first_not_of("0123456789") == serial.npos;
}

// A name that no other writer uses, in this process or another: calls `create` with one after the other until it does
// not find that the file exists. Empty if it fails otherwise; errno says why.
template <class Create>
std::string create_unique(const std::string& target, const Create& create) {
  for (int serial = 0; serial < kMostNames;) {
    std::string name = str(target, kTemporary, serial);
    if (create(name.c_str())) return name;
    if (errno != EEXIST) return "";
    if (!remove_leftover(name.c_str())) ++serial;
  }
  errno = EEXIST;
  return "";
}

std::string link_of(const FileDescriptor& file) { return str("/proc/self/fd/", file.get()); }

// A file that has no name yet: a process that is killed leaves nothing behind. Invalid where the file system knows no
// such files, or nothing could name it later.
FileDescriptor create_nameless(const std::string& folder) {
#ifdef O_TMPFILE
  FileDescriptor file(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kNewFileMode));
  if (file.valid() && ::access(link_of(file).c_str(), F_OK) == 0) {
    lock(file);
    return file;
  }
#endif
  return FileDescriptor();
}

FileDescriptor create_named(const char* name) {
  FileDescriptor file(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode));
  if (!file.valid()) return file;
  lock(file);
  struct stat now;
  if (::fstat(file.get(), &now) == 0 && now.st_nlink > 0) return file;
  errno = EEXIST;  // another process took it for a leftover before it was locked, and removed it
  return FileDescriptor();
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(follow_links(path_)) {
  struct stat old;
  bool exists = ::stat(path_.c_str(), &old) == 0;
  RUSH_CHECK_IO(!exists || S_ISREG(old.st_mode), path_, ": cannot replace: not a regular file");

  file_ = create_nameless(folder_of(target_));
  if (!file_.valid()) {
    temporary_path_ = create_unique(target_, [&](const char* name) {
      file_ = create_named(name);
      return file_.valid();
    });
  }
  RUSH_CHECK_IO(file_.valid(), path_, ": cannot write in its folder: ", std::strerror(errno));
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
  const std::string folder = folder_of(target_);  // no memory is needed once the file has its name
  RUSH_CHECK_IO(::fsync(file_.get()) == 0, path_, ": cannot flush to disk: ", std::strerror(errno));
  if (temporary_path_.empty()) {
    const std::string nameless = link_of(file_);
    temporary_path_ = create_unique(target_, [&](const char* name) {
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
    RUSH_CHECK_IO(!temporary_path_.empty(), path_, ": cannot write in its folder: ", std::strerror(errno));
  }
  RUSH_CHECK_IO(::rename(temporary_path_.c_str(), target_.c_str()) == 0, path_,
                ": cannot rename into place: ", std::strerror(errno));
  temporary_path_.clear();
  // Only now: closing releases the lock.
  RUSH_CHECK_IO(::close(file_.release()) == 0, path_, ": cannot close: ", std::strerror(errno));
  flush_folder(path_, folder);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

// A rename is on disk only when its folder is. File systems that cannot flush a folder say so with EINVAL.
void flush_folder(const std::string& path, const std::string& folder) {
  FileDescriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return;  // a folder that may be written but not read: nothing more can be done
  RUSH_CHECK_IO(::fsync(handle.get()) == 0 || errno == EINVAL, path,
                ": cannot flush its folder: ", std::strerror(errno));
}

void remove_leftovers(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_temporary(entry->path().filename().native())) remove_leftover(entry->path().c_str());
  }
  RUSH_CHECK_IO(!error, folder, ": cannot look for leftovers: ", error.message());
}

}  // namespace rush::io
