// CMake defines the RUSH_BUILD_ names of this file: texts, lists with semicolons between their elements.
#include "core/library/build_tools.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "core/error/error.h"
#include "core/io/read_file.h"

extern char** environ;

namespace rush::library {

namespace {

std::vector<std::string> elements(const std::string& list) {
  std::vector<std::string> all;
  std::istringstream rest(list);
  for (std::string element; std::getline(rest, element, ';');) {
    if (!element.empty()) all.push_back(element);
  }
  return all;
}

}  // namespace

Compiler host_compiler() { return {RUSH_BUILD_COMPILER, elements(RUSH_BUILD_FLAGS)}; }
Compiler device_compiler() { return {RUSH_BUILD_DEVICE_COMPILER, elements(RUSH_BUILD_DEVICE_FLAGS)}; }
std::vector<std::string> device_runtime() { return elements(RUSH_BUILD_DEVICE_RUNTIME); }

Run run(const std::vector<std::string>& command, const std::string& folder, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {-1, std::strerror(error)};
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  const std::vector<uint8_t> printed = io::read_file(output);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1, std::string(printed.begin(), printed.end())};
}

}  // namespace rush::library
