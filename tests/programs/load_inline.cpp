// load_inline and its cache, which processes share: this program starts itself for each load, with a compiler that
// counts its calls.
#include "core/library/load_inline.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/dispatch/call.h"
#include "rushlight.h"

using namespace rush;
namespace fs = std::filesystem;

namespace {

const char* const kSource = R"(
#include "core/library/library.h"
#include "core/ops/pointwise/binary.h"

constinit rush::Op<rush::Tensor(const rush::Tensor&, double)> scale{"inline_test::scale(Tensor x, float a) -> Tensor"};

RUSH_OPERATORS(library) {
  library.register_kernel<scale>(rush::kCPU, [](const rush::Tensor& x, double a) { return rush::mul(x, a); });
}
)";

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::exit(1);
}

InlineOptions counting(const std::string& folder) {
  InlineOptions options;
  options.compiler = folder + "/compiler";
  return options;
}

// What a started process does.
int load_and_use(const std::string& folder) {
  for (int i = 0; i < 2; ++i) load_inline("scale", {kSource}, counting(folder));
  const auto& scale = find_operator<Tensor(const Tensor&, double)>("inline_test::scale");
  return equal(scale(tensor({1.0f, 2.0f}), 3), tensor({3.0f, 6.0f})) ? 0 : 1;
}

// Starts a process that loads with this cache, on a tiny disk of its own where `size` is given.
pid_t start(const std::string& folder, const std::string& cache, const char* disk = nullptr) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("RUSH_CACHE_DIR", cache.c_str(), 1);
  if (disk) {
    fs::create_directories(cache);
    const bool is_read_only = std::string(disk) == "ro";
    const bool mounted =
        unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("tmpfs", cache.c_str(), "tmpfs", is_read_only ? MS_RDONLY : 0, is_read_only ? "" : disk) == 0;
    if (!mounted) _exit(77);
  }
  execl("/proc/self/exe", "load_inline", folder.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int compilations(const std::string& folder) {
  const std::string log = read(folder + "/log");
  fs::remove(folder + "/log");
  return static_cast<int>(std::count(log.begin(), log.end(), '\n'));
}

fs::path kept(const std::string& cache) {
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    if (entry.path().extension() == ".so") return entry.path();
  }
  return {};
}

void damage(const fs::path& library) {
  std::fstream file(library, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(library) / 2));
  file.write("damaged", 7);
}

void test_cache(const std::string& folder) {
  const std::string cache = folder + "/cache";
  check(wait_for(start(folder, cache)) == 0, "a first process loads");
  check(compilations(folder) == 2, "it calls the compiler once, and once to link");
  const fs::path library = kept(cache);
  check(!library.empty() && fs::exists(library.parent_path() / "scale.cpp"), "library and source are kept");
  const std::string whole = read(library);

  check(wait_for(start(folder, cache)) == 0 && compilations(folder) == 0, "a second process compiles nothing");
  damage(library);
  check(wait_for(start(folder, cache)) == 0 && compilations(folder) == 2, "a damaged library is compiled again");
  check(read(library).size() == whole.size() && wait_for(start(folder, cache)) == 0 && compilations(folder) == 0,
        "and kept");
  fs::resize_file(library, whole.size() / 3);
  check(wait_for(start(folder, cache)) == 0 && compilations(folder) == 2, "so is one that was cut off");

  const pid_t first = start(folder, folder + "/shared"), second = start(folder, folder + "/shared");
  check(wait_for(first) == 0 && wait_for(second) == 0, "two processes load at once");
  check(compilations(folder) == 2, "one of them compiles");
}

void test_without_cache(const std::string& folder) {
  check(wait_for(start(folder, "/dev/null/cache")) == 0 && compilations(folder) == 2, "no cache costs time alone");
  for (const char* disk : {"size=8k", "ro"}) {
    const int status = wait_for(start(folder, folder + "/small", disk));
    if (status == 77) {
      std::puts("left out: no disk can be mounted here");
      return;
    }
    check(status == 0 && compilations(folder) == 2, std::string("so does a disk that is full or read-only: ") + disk);
  }
}

template <class E, class F>
std::string thrown(const F& call) {
  try {
    call();
  } catch (const E& error) {
    return error.msg();
  }
  return "nothing of the type";
}

void test_errors(const std::string& folder) {
  const auto contains = [](const std::string& text, const char* part) {
    check(text.find(part) != std::string::npos, text + " should contain " + part);
  };
  const std::string wrong = "#include \"core/tensor.h\"\n\nint f() {\n  return undeclared;\n}\n";
  std::string output;
  contains(thrown<CompileError>([&] {
             try {
               load_inline("broken", {wrong}, counting(folder));
             } catch (const CompileError& error) {
               output = error.output();
               throw;
             }
           }),
           "load_inline: broken does not compile: broken.cpp:4:10: error: ");
  check(std::count(output.begin(), output.end(), '\n') > 1, "the output has more lines");
  const std::string entry = "#include \"core/library/library.h\"\nRUSH_OPERATORS(mine) { (void)mine; }\n";
  load_inline("named", {entry}, counting(folder));
  contains(thrown<CompileError>([&] {
             load_inline("twice", {entry, entry}, counting(folder));
           }),
           "rush_operators_entry");
  setenv("TMPDIR", (folder + "/nowhere").c_str(), 1);
  contains(thrown<IOError>([&] { load_inline("scratch", {entry}, counting(folder)); }), "TMPDIR");
  unsetenv("TMPDIR");
  contains(thrown<ValueError>([&] { load_inline("no entry", {wrong}); }), "the name 'no entry' must be of letters");
  contains(thrown<ValueError>([&] { load_inline("none", {}); }), "has no C++ source");
  contains(thrown<ValueError>([&] { load_inline("empty", {"int i;"}, counting(folder)); }), "has no RUSH_OPERATORS");
  InlineOptions options;
  options.headers = folder;
  contains(thrown<IOError>([&] { load_inline("scale", {kSource}, options); }), "has no rushlight.h");
  options = counting(folder);
  options.compiler = folder + "/nothing";
  contains(thrown<IOError>([&] { load_inline("scale", {kSource}, options); }), "cannot run ");
  contains(thrown<NotImplementedError>([] { find_operator<Tensor(const Tensor&)>("inline_test::none"); }),
           "there is no operator named 'inline_test::none'");
  load_inline("scale", {kSource}, counting(folder));
  contains(thrown<TypeError>([] { find_operator<Tensor(const Tensor&, int64_t)>("inline_test::scale"); }),
           "argument #1 'a' is float in its schema; in C++ it is int");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return load_and_use(argv[1]);
  std::string folder = fs::temp_directory_path() / "load_inline-XXXXXX";
  check(mkdtemp(folder.data()), "there is a folder for temporary files");
  setenv("RUSH_CACHE_DIR", (folder + "/own").c_str(), 1);
  std::ofstream(folder + "/compiler") << "#!/bin/sh\necho >>" << folder << "/log\nexec \"" << RUSH_TEST_COMPILER
                                      << "\" \"$@\"\n";
  chmod((folder + "/compiler").c_str(), 0700);
  test_cache(folder);
  test_without_cache(folder);
  test_errors(folder);
  fs::remove_all(folder);
  std::puts("ok");
}
