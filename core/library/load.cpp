// Opens shared libraries of operators.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/debug/stack_trace.h"
#include "core/io/read_file.h"
#include "core/library/library.h"

namespace rush {

namespace {

using library::Identity;
using library::kIdentity;

struct Close {
  void operator()(void* file) const { dlclose(file); }
};
// A file that is open as long as this lives, or, released, for good.
using SharedObject = std::unique_ptr<void, Close>;

// "Rushlight 0.1.0, layout 2619290064".
std::string text_of(const Identity& identity) {
  const size_t size = strnlen(identity.version, sizeof(identity.version));
  return str("Rushlight ", std::string_view(identity.version, size), ", layout ", identity.layout);
}

// Before anything in the file runs.
void check_identity(const std::string& path, const std::vector<uint8_t>& bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  RUSH_CHECK_IO(all.starts_with("\177ELF"), path, ": load_library: is no shared library");
  const size_t found = all.find(kIdentity.mark);
  RUSH_CHECK_VALUE(found != all.npos && all.size() - found >= sizeof(Identity), path,
                   ": load_library: has no RUSH_OPERATORS(library) { ... }");
  Identity built_against;
  std::memcpy(&built_against, bytes.data() + found, sizeof(Identity));
  const std::string theirs = text_of(built_against), ours = text_of(kIdentity);
  RUSH_CHECK_VALUE(theirs == ours, path, ": load_library: was built against ", theirs,
                   ", and this program is linked to ", ours,
                   ": build it again, with the compiler that built this program");
}

// Why the file could not be opened, where it is something that the program lacks.
[[noreturn]] void throw_not_opened(const std::string& path) {
  const std::string why = dlerror();
  constexpr std::string_view kUndefined = "undefined symbol: ";
  const size_t found = why.find(kUndefined);
  RUSH_CHECK_IO(found != why.npos, "load_library: ", why);
  const std::string mangled = why.substr(found + kUndefined.size());
  const std::string symbol = demangle(mangled.substr(0, mangled.find_first_of(" ,\t")).c_str());
  const bool is_ours = std::min(mangled.find("N4rush"), mangled.find("NK4rush")) < 6;  // behind "_Z", "_ZTI", ...
  RUSH_CHECK_VALUE(dlsym(RTLD_DEFAULT, "_ZN4rush8registryEv"), path,
                   ": load_library: this program does not export Rushlight's symbols: link it with -rdynamic, as "
                   "CMake does for what is linked to rushlight::rushlight");
  RUSH_CHECK_VALUE(is_ours, path, ": load_library: needs ", symbol, ", which neither it nor this program defines");
  RUSH_THROW(ValueError, path, ": load_library: needs ", symbol,
             ", which the linker left out of this program: call rush_keep_all(PROGRAM) in its CMakeLists.txt, or link "
             "a Rushlight that was built with BUILD_SHARED_LIBS");
}

}  // namespace

void load_library(const std::string& path) {
  static std::mutex one_at_a_time;
  static std::vector<const void*> loaded;
  const std::lock_guard lock(one_at_a_time);
  check_identity(path, io::read_file(path));
  const std::string opened = path.find('/') == path.npos ? "./" + path : path;
  SharedObject file(dlopen(opened.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!file) throw_not_opened(path);
  if (std::find(loaded.begin(), loaded.end(), file.get()) != loaded.end()) return;
  const auto* entry = static_cast<const library::detail::Entry*>(dlsym(file.get(), "rush_operators_entry"));
  RUSH_CHECK_VALUE(entry, path, ": load_library: has no RUSH_OPERATORS(library) { ... }");
  RUSH_CHECK_VALUE(entry->registry == &registry, path,
                   ": load_library: has a copy of Rushlight inside: build it with rush_add_operators, or link it to "
                   "nothing of Rushlight");
  add_operators(entry->body);
  loaded.push_back(file.release());
}

}  // namespace rush
