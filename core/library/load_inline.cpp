// CMake defines the RUSH_BUILD_ names of this file: texts, lists with semicolons between their elements.
#include "core/library/load_inline.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/error/warning.h"
#include "core/io/atomic_file.h"
#include "core/io/md5.h"
#include "core/io/read_file.h"
#include "core/library/file_cache.h"

extern char** environ;

namespace rush {

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A compiler that built this library, and the options that what is compiled later needs, too.
struct Compiler {
  std::string program;  // empty: there is none
  Strings flags;
};

Strings elements(const std::string& list) {
  Strings all;
  std::istringstream rest(list);
  for (std::string element; std::getline(rest, element, ';');) {
    if (!element.empty()) all.push_back(element);
  }
  return all;
}

// A folder of this process's own, removed with what is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string path = fs::temp_directory_path() / "rushlight-XXXXXX";
    RUSH_CHECK_IO(::mkdtemp(path.data()), path, ": load_inline: cannot make this folder");
    path_ = path;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What load_inline was asked for, with everything that was left open filled in.
struct Request {
  std::string name;
  Strings sources, device_sources;
  Compiler host = {RUSH_BUILD_COMPILER, elements(RUSH_BUILD_FLAGS)};
  Compiler device = {RUSH_BUILD_DEVICE_COMPILER, elements(RUSH_BUILD_DEVICE_FLAGS)};
  Strings link_flags = {};

  // All that what is compiled depends on.
  std::string key() const {
    const library::Identity& of = library::kIdentity;
    const auto all = nlohmann::json::array({of.version, of.layout, sources, device_sources, host.program, host.flags,
                                            device.program, device.flags, link_flags});
    return io::md5_hex(nlohmann::json::to_cbor(all));
  }

  std::string file_name(size_t i, const Strings& of, const char* ending) const {
    return of.size() == 1 ? name + ending : str(name, "_", i, ending);
  }
};

void append_all(Strings& to, const Strings& from) { to.insert(to.end(), from.begin(), from.end()); }

Request complete(const std::string& name, const Strings& sources, const InlineOptions& options) {
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(),
                                                    [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  RUSH_CHECK_VALUE(is_word, "load_inline: the name '", name, "' must be of letters, digits and underscores");
  RUSH_CHECK_VALUE(!sources.empty(), "load_inline: ", name, " has no C++ source, where its RUSH_OPERATORS would be");
  Request request{name, sources, options.device_sources};
  RUSH_CHECK_VALUE(request.device_sources.empty() || !request.device.program.empty(), "load_inline: ", name,
                   " has sources for a device, and this Rushlight was built without a compiler for them");
  if (!options.compiler.empty()) request.host.program = options.compiler;

  const std::string headers = fs::absolute(options.headers.empty() ? "." : options.headers).lexically_normal();
  RUSH_CHECK_IO(fs::exists(fs::path(headers) / "rushlight.h"), headers,
                ": load_inline: has no rushlight.h; InlineOptions::headers names the folder that has");
  Strings folders = {"-I" + headers};
  for (const std::string& folder : options.include_folders) folders.push_back("-I" + fs::absolute(folder).string());
  for (Compiler* compiler : {&request.host, &request.device}) append_all(compiler->flags, folders);
  append_all(request.host.flags, options.flags);
  append_all(request.device.flags, options.device_flags);
  if (!request.device_sources.empty()) request.link_flags = elements(RUSH_BUILD_DEVICE_RUNTIME);
  append_all(request.link_flags, options.link_flags);
  return request;
}

// "scale.cpp:3:10: error: 'y' was not declared": the first line that says what is wrong.
std::string first_error(const std::string& output) {
  std::string first;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != line.npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

// Starts the command in that folder, and waits until it ends. Throws CompileError where it fails.
void must_run(const Request& request, const Strings& command, const std::string& folder) {
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  const std::string output = folder + "/output";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  RUSH_CHECK_IO(error == 0, "load_inline: cannot run ", command[0], ": ", std::strerror(error),
                "; it built this Rushlight, and InlineOptions::compiler names another");
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::vector<uint8_t> bytes = io::read_file(output);
  const std::string printed(bytes.begin(), bytes.end());
  throw CompileError(str("load_inline: ", request.name, " does not compile: ", first_error(printed)), printed);
}

// The path of the shared library, which is compiled in `folder`; for debuggers its sources lie in another.
std::string build(const Request& request, const std::string& folder, const std::string& kept_in) {
  const std::string library = request.name + ".so";
  Strings link = {request.host.program, "-shared", "-o", library};
  const auto compile = [&](const Compiler& compiler, const Strings& sources, const char* ending) {
    for (size_t i = 0; i < sources.size(); ++i) {
      const std::string file = request.file_name(i, sources, ending);
      io::write_file_atomically(folder + "/" + file, sources[i]);
      Strings command = {compiler.program};
      append_all(command, compiler.flags);
      append_all(command, {"-c", file, "-o", file + ".o"});
      if (&compiler == &request.host) command.push_back("-fdebug-prefix-map=" + folder + "=" + kept_in);
      must_run(request, command, folder);
      link.push_back(file + ".o");
    }
  };
  compile(request.host, request.sources, ".cpp");
  compile(request.device, request.device_sources, ".cu");
  append_all(link, request.link_flags);
  must_run(request, link, folder);
  return folder + "/" + library;
}

// Keeps the library, and the sources for debuggers.
bool keep(library::FileCache& cache, const Request& request, const std::string& library) {
  const std::vector<uint8_t> bytes = io::read_file(library);
  const bool kept = cache.keep(request.name + ".so", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (size_t i = 0; kept && i < request.sources.size(); ++i) {
    cache.keep(request.file_name(i, request.sources, ".cpp"), request.sources[i]);
  }
  return kept;
}

}  // namespace

void load_inline(const std::string& name, const std::vector<std::string>& sources, const InlineOptions& options) {
  static std::mutex one_at_a_time;
  static std::set<std::string> loaded;
  const Request request = complete(name, sources, options);
  const std::string key = request.key();
  const std::lock_guard lock(one_at_a_time);
  if (loaded.contains(key)) return;

  library::FileCache cache("inline/" + name + "-" + key);
  std::string path = cache.path_of(name + ".so");
  std::optional<ScratchFolder> scratch;
  if (!cache.read(name + ".so")) {
    scratch.emplace();
    const std::string library = build(request, scratch->path(), cache.folder());
    if (!keep(cache, request, library)) {
      RUSH_WARN_ONCE_PER_CALLER("load_inline: what was compiled cannot be kept for the next time: ", cache.reason());
      path = library;
    }
  }
  load_library(path);
  loaded.insert(key);
}

}  // namespace rush
