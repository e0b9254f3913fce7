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

constexpr std::string_view kDeviceCompiler = RUSH_BUILD_DEVICE_COMPILER;  // empty: there is none

Strings elements(const std::string& list) {
  Strings all;
  std::istringstream rest(list);
  for (std::string element; std::getline(rest, element, ';');) {
    if (!element.empty()) all.push_back(element);
  }
  return all;
}

Strings joined(std::initializer_list<Strings> lists) {
  Strings all;
  for (const Strings& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// A folder of this process's own, removed with what is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code missing;
    std::string path = fs::temp_directory_path(missing) / "rushlight-XXXXXX";
    RUSH_CHECK_IO(!missing, "load_inline: the folder for temporary files, see TMPDIR: ", missing.message());
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

// What is written and run to make a library.
struct Plan {
  std::vector<std::pair<std::string, std::string>> files;  // names and texts of the sources
  std::vector<Strings> commands;                           // the last one links

  // All that the library depends on.
  std::string key() const {
    const library::Identity& of = library::kIdentity;
    return io::md5_hex(nlohmann::json::to_cbor(nlohmann::json::array({of.version, of.layout, files, commands})));
  }
};

Plan plan_for(const std::string& name, const Strings& sources, const InlineOptions& options) {
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(),
                                                    [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  RUSH_CHECK_VALUE(is_word, "load_inline: the name '", name, "' must be of letters, digits and underscores");
  RUSH_CHECK_VALUE(!sources.empty(), "load_inline: ", name, " has no C++ source, where its RUSH_OPERATORS would be");
  const std::string compiler = options.compiler.empty() ? RUSH_BUILD_COMPILER : options.compiler;
  const bool for_device = !options.device_sources.empty();
  RUSH_CHECK_VALUE(!for_device || !kDeviceCompiler.empty(), "load_inline: ", name,
                   " has sources for a device, and this Rushlight was built without a compiler for them");
  const std::string headers = fs::absolute(options.headers.empty() ? "." : options.headers).lexically_normal();
  RUSH_CHECK_IO(fs::exists(fs::path(headers) / "rushlight.h"), headers,
                ": load_inline: has no rushlight.h; InlineOptions::headers names the folder that has");
  Strings folders = {"-I" + headers};
  for (const std::string& folder : options.include_folders) folders.push_back("-I" + fs::absolute(folder).string());

  Plan plan;
  Strings objects;
  const auto compile = [&](const Strings& texts, const char* ending, const Strings& command) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string file = texts.size() == 1 ? name + ending : str(name, "_", i, ending);
      plan.files.emplace_back(file, texts[i]);
      plan.commands.push_back(joined({command, {"-c", file, "-o", file + ".o"}}));
      objects.push_back(file + ".o");
    }
  };
  compile(sources, ".cpp", joined({{compiler}, elements(RUSH_BUILD_FLAGS), folders, options.flags}));
  compile(options.device_sources, ".cu",
          joined({{std::string(kDeviceCompiler)}, elements(RUSH_BUILD_DEVICE_FLAGS), folders, options.device_flags}));
  const Strings runtime = for_device ? elements(RUSH_BUILD_DEVICE_RUNTIME) : Strings();
  plan.commands.push_back(joined({{compiler, "-shared", "-o", name + ".so"}, objects, runtime, options.link_flags}));
  return plan;
}

// "scale.cpp:3:10: error: 'y' was not declared", "/usr/bin/ld: cannot find -lm2": the first line that says what is
// wrong.
std::string first_error(const std::string& output) {
  std::string first;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const bool is_of_linker = line.find("ld: ") != line.npos && line.find("warning: ") == line.npos;
    if (is_of_linker || line.find("error") != line.npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

// Starts the command in that folder, and waits until it ends. Throws CompileError where it fails.
void must_run(const std::string& name, const Strings& command, const std::string& folder) {
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
  throw CompileError(str("load_inline: ", name, " does not compile: ", first_error(printed)), printed);
}

// Makes the library in `folder`; for debuggers its sources lie in another.
void build(const std::string& name, const Plan& plan, const std::string& folder, const std::string& kept_in) {
  for (const auto& [file, text] : plan.files) io::write_file_atomically(folder + "/" + file, text);
  for (Strings command : plan.commands) {
    if (command[0] != kDeviceCompiler) command.push_back("-fdebug-prefix-map=" + folder + "=" + kept_in);
    must_run(name, command, folder);
  }
}

// Keeps the library, and the sources for debuggers.
bool keep(library::FileCache& cache, const Plan& plan, const std::string& library) {
  const std::vector<uint8_t> bytes = io::read_file(library);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!cache.keep(fs::path(library).filename(), text)) return false;
  for (const auto& [name, source] : plan.files) cache.keep(name, source);
  return true;
}

}  // namespace

void load_inline(const std::string& name, const std::vector<std::string>& sources, const InlineOptions& options) {
  static std::mutex one_at_a_time;
  static std::set<std::string> loaded;
  const Plan plan = plan_for(name, sources, options);
  const std::string key = plan.key();
  const std::lock_guard lock(one_at_a_time);
  if (loaded.contains(key)) return;

  library::FileCache cache("inline/" + name + "-" + key);
  std::string path = cache.path_of(name + ".so");
  std::optional<ScratchFolder> scratch;
  if (!cache.read(name + ".so")) {
    scratch.emplace();
    build(name, plan, scratch->path(), cache.folder());
    const std::string library = scratch->path() + "/" + name + ".so";
    if (!keep(cache, plan, library)) {
      RUSH_WARN_ONCE_PER_CALLER("load_inline: what was compiled cannot be kept for the next time: ", cache.reason());
      path = library;
    }
  }
  load_library(path);
  loaded.insert(key);
}

}  // namespace rush
