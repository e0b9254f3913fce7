#include "examples/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/io/atomic_file.h"

namespace examples {

namespace fs = std::filesystem;
using rush::io::FileDescriptor;

namespace {

constexpr mode_t kLockFileMode = 0666;  // less the process's umask

// "process 1234 on castor": who has the lock.
std::string this_process() {
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return rush::str("process ", ::getpid(), " on ", host);
}

std::string content(const FileDescriptor& file) {
  char text[300];
  const ssize_t size = ::pread(file.get(), text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "another process";
}

// The kernel releases the lock when the process ends, however it ends; the file stays.
FileDescriptor take_lock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kLockFileMode));
  RUSH_CHECK_IO(file.valid(), path, ": cannot open: ", std::strerror(errno));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    RUSH_CHECK_IO(errno != EWOULDBLOCK, folder, ": ", content(file), " is training in this folder; wait for it, or ",
                  "choose another with --out_dir");
    std::fprintf(stderr, "%s: cannot lock: %s; two runs in this folder will not notice each other\n", path.c_str(),
                 std::strerror(errno));
    return file;
  }
  const std::string owner = this_process();
  RUSH_CHECK_IO(::ftruncate(file.get(), 0) == 0 &&
                    ::pwrite(file.get(), owner.data(), owner.size(), 0) == static_cast<ssize_t>(owner.size()),
                path, ": cannot write: ", std::strerror(errno));
  return file;
}

// Also a link that leads nowhere.
bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

}  // namespace

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  RUSH_CHECK_IO(!error, path, ": cannot make this folder: ", error.message());
  RUSH_CHECK_IO(::access(path.c_str(), W_OK | X_OK) == 0, path,
                ": cannot write in this folder: ", std::strerror(errno));
}

void write_picture(const std::string& path, const std::string& content) {
  rush::io::write_file_atomically(path, content);
  std::printf("picture: %s\n", path.c_str());
}

void Beginning::add_to(Options& options) {
  options.add("--resume", &resume, "go on from the checkpoint in out_dir; where there is none, start");
  options.add("--overwrite", &overwrite,
              "start anew where out_dir has the checkpoint of an earlier run, which is lost");
  options.add("--allow_changes", &allow_changes,
              "with --resume: go on with another device, rate or length than the checkpoint's");
}

void Beginning::check(const std::string& out_dir) const {
  RUSH_CHECK_VALUE(!resume || !overwrite, "--resume and --overwrite exclude each other");
  RUSH_CHECK_VALUE(!resume || !out_dir.empty(), "--resume needs the --out_dir of the run");
}

RunFolder::RunFolder(const std::string& path, const Beginning& beginning, bool is_own)
    : beginning_(beginning), is_own_(is_own) {
  if (path.empty()) return;
  checkpoint_ = path + "/checkpoint.safetensors";
  if (!is_own) return;
  make_folder(path);
  lock_ = take_lock(path);
  rush::io::remove_leftovers(path);
  RUSH_CHECK_VALUE(beginning.resume || beginning.overwrite || !is_there(checkpoint_), checkpoint_,
                   " is of an earlier run: --resume goes on from it, --overwrite starts anew in its place, another "
                   "--out_dir leaves it alone");
}

bool RunFolder::begin(const std::function<void()>& load, const std::function<void()>& save) {
  if (checkpoint_.empty() || (!is_own_ && !beginning_.resume)) return false;
  if (!beginning_.resume || !is_there(checkpoint_)) {
    if (beginning_.resume) std::printf("no checkpoint %s: starting anew\n", checkpoint_.c_str());
    save();
    return false;
  }
  try {
    load();
  } catch (const rush::ValueError& error) {
    if (beginning_.allow_changes) throw;
    throw rush::ValueError(rush::str(error.what_without_backtrace(),
                                     "; a run goes on with the settings that it began with, but for a ",
                                     "device, rate or length that --allow_changes allows to change"));
  }
  for (const std::string& change : changes_) std::printf("changed: %s\n", change.c_str());
  return true;
}

void RunFolder::remove_checkpoint() const {
  std::error_code error;
  fs::remove(checkpoint_, error);
  RUSH_CHECK_IO(!error, checkpoint_, ": cannot remove: ", error.message());
}

void save_checkpoint(const rush::Checkpoint& run, const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return run.save(path);
  const std::string own = path + ".own";
  run.save(own);
  fs::rename(own, path, error);
  RUSH_CHECK_IO(!error, path, ": cannot replace this link: ", error.message());
}

std::string try_to_save(const std::function<void()>& save) {
  try {
    save();
  } catch (const rush::IOError& error) {
    return rush::str("warning: ", error.what_without_backtrace(),
                     "; the run goes on, and tries again at the next checkpoint");
  }
  return "";
}

}  // namespace examples
