#include "core/debug/source_line.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "core/str.h"

extern char** environ;

namespace rush {

namespace {

// What a command writes, without what it complains of; "" where it cannot be run.
std::string output_of(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t count = 0; error == 0 && (count = read(ends[0], part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(count));
  close(ends[0]);
  if (error == 0) waitpid(process, nullptr, 0);
  return text;
}

// Whether it is a header of this library, in its tree or installed, or of the standard library.
bool is_library_file(const std::string& file) {
  static const std::string root(__FILE__, sizeof(__FILE__) - sizeof("core/debug/source_line.cpp"));
  for (const char* room : {"core/", "autograd/", "backends/", "nn/", "optim/"}) {
    if (file.starts_with(root + room)) return true;
  }
  return file.starts_with("/usr/include/") || file.find("/include/rushlight/") != file.npos ||
         file.find("/include/c++/") != file.npos;
}

// Of addr2line's lines "file:41 (discriminator 2)" or "??:?", from the innermost inlined function outwards, the first
// of the program's own.
SourceLine own_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string place; std::getline(lines, place);) {
    const size_t colon = place.rfind(':');
    const int line = colon == place.npos ? 0 : std::atoi(&place[colon + 1]);
    const std::string file = std::filesystem::path(place.substr(0, colon)).lexically_normal();
    if (line > 0 && !is_library_file(file)) return {file, line};
  }
  return {};
}

SourceLine look_up(const void* return_address) {
  Dl_info module{};
  link_map* map = nullptr;
  const char* const address = static_cast<const char*>(return_address) - 1;  // in the instruction that calls
  if (!dladdr1(address, &module, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return {};
  std::error_code failed;
  const std::string file =
      map->l_name[0] == '\0' ? std::filesystem::read_symlink("/proc/self/exe", failed).string() : map->l_name;
  std::ostringstream offset;
  offset << std::hex << "0x" << reinterpret_cast<uintptr_t>(address) - map->l_addr;
  return own_line(output_of({"addr2line", "-i", "-e", file, offset.str()}));
}

}  // namespace

SourceLine source_line(const void* return_address) {
  static auto& known = *new std::map<const void*, SourceLine>;
  static std::mutex& mutex = *new std::mutex;
  if (!return_address) return {};
  const std::lock_guard lock(mutex);
  const auto found = known.find(return_address);
  if (found != known.end()) return found->second;
  return known.emplace(return_address, look_up(return_address)).first->second;
}

std::string short_text(const SourceLine& where) {
  return where.line == 0 ? "" : str(where.file.substr(where.file.rfind('/') + 1), ':', where.line);
}

}  // namespace rush
