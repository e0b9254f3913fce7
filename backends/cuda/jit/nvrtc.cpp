#include "backends/cuda/jit/nvrtc.h"

#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "backends/cuda/jit/headers.h"

namespace rush::cuda::jit {

namespace {

// clang-format off
#define RUSH_NVRTC_FUNCTIONS(_) \
  _(nvrtcVersion) _(nvrtcGetErrorString) _(nvrtcCreateProgram) _(nvrtcDestroyProgram) _(nvrtcAddNameExpression) \
  _(nvrtcCompileProgram) _(nvrtcGetProgramLogSize) _(nvrtcGetProgramLog) _(nvrtcGetCUBINSize) _(nvrtcGetCUBIN) \
  _(nvrtcGetLoweredName)
// clang-format on

struct Nvrtc {
#define RUSH_DECLARE(name) decltype(&::name) name = nullptr;
  RUSH_NVRTC_FUNCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE

  // By its name, or where it was when the library was built.
  Nvrtc() {
    const std::string soname = str("libnvrtc.so.", CUDA_VERSION / 1000);
    void* library = nullptr;
    for (const std::string& path : {soname, std::string(RUSH_NVRTC_LIBRARY)}) {
      if (!library) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    RUSH_CHECK_AS(CudaError, library, "compiling a kernel needs NVRTC: neither ", soname, " nor ", RUSH_NVRTC_LIBRARY,
                  " could be opened; LD_LIBRARY_PATH may name its folder");
#define RUSH_LOAD(name)                                           \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  RUSH_CHECK_AS(CudaError, name, soname, " has no " #name);
    RUSH_NVRTC_FUNCTIONS(RUSH_LOAD)
#undef RUSH_LOAD
    open_builtins();
  }

  // NVRTC opens its second library by name, which finds what is loaded: that beside NVRTC, wherever this is. Where
  // there is none, NVRTC says so when it compiles.
  void open_builtins() const {
    Dl_info place;
    int major = 0, minor = 0;
    check(nvrtcVersion(&major, &minor), "nvrtcVersion");
    if (!dladdr(reinterpret_cast<void*>(nvrtcVersion), &place) || !place.dli_fname) return;
    const std::string path = place.dli_fname;
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    if (!folder.empty()) dlopen(str(folder, "libnvrtc-builtins.so.", major, ".", minor).c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  void check(nvrtcResult status, const char* call) const {
    RUSH_CHECK_AS(CudaError, status == NVRTC_SUCCESS, call, " failed: ", nvrtcGetErrorString(status));
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc opened;
  return opened;
}

#define RUSH_NVRTC_CHECK(function, ...) nvrtc().check(nvrtc().function(__VA_ARGS__), #function)

struct Destroy {
  void operator()(nvrtcProgram program) const { static_cast<void>(nvrtc().nvrtcDestroyProgram(&program)); }
};
using Program = std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, Destroy>;

Program program_of(const Source& source) {
  std::vector<const char*> texts, names;
  for (const Header& header : headers()) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  nvrtcProgram program = nullptr;
  RUSH_NVRTC_CHECK(nvrtcCreateProgram, &program, source.text.c_str(), source.name.c_str(),
                   static_cast<int>(texts.size()), texts.data(), names.data());
  return Program(program);
}

std::string log_of(nvrtcProgram program) {
  size_t size = 0;  // with a zero at the end
  RUSH_NVRTC_CHECK(nvrtcGetProgramLogSize, program, &size);
  std::string text(size, '\0');
  RUSH_NVRTC_CHECK(nvrtcGetProgramLog, program, text.data());
  text.resize(text.find_last_not_of(std::string_view("\0\n ", 3)) + 1);  // 0 where nothing else is there
  return text;
}

Cubin cubin_of(nvrtcProgram program, const Source& source) {
  Cubin cubin;
  size_t size = 0;
  RUSH_NVRTC_CHECK(nvrtcGetCUBINSize, program, &size);
  cubin.image.resize(size);
  RUSH_NVRTC_CHECK(nvrtcGetCUBIN, program, cubin.image.data());
  for (const std::string& kernel : source.kernels) {
    const char* symbol = nullptr;
    RUSH_NVRTC_CHECK(nvrtcGetLoweredName, program, kernel.c_str(), &symbol);
    cubin.symbols.emplace_back(symbol);
  }
  return cubin;
}

// The log on one line: without the echo of the source and the carets below it, which are indented.
std::string on_one_line(const std::string& log) {
  std::string line;
  std::istringstream lines(log);
  for (std::string each; std::getline(lines, each);) {
    if (!each.empty() && each[0] != ' ') line += str(line.empty() ? "" : "; ", each);
  }
  return line;
}

}  // namespace

CompileError::CompileError(const Source& source, std::string log)
    : CudaError(str(source.name, " does not compile: ", on_one_line(log))), log_(std::move(log)) {}

int nvrtc_version() {
  int major = 0, minor = 0;
  RUSH_NVRTC_CHECK(nvrtcVersion, &major, &minor);
  return major * 1000 + minor * 10;
}

std::vector<std::string> options_of(const Source& source, int architecture) {
  std::vector<std::string> options = {"--std=c++20",
                                      "--device-as-default-execution-space",
                                      "--device-int128",
                                      "--pre-include=backends/cuda/jit/device_code.h",
                                      "--pre-include=core/half.h",
                                      "--pre-include=core/complex.h",
                                      str("--gpu-architecture=sm_", architecture)};
  // A third less time: kernels without textures, and that launch no kernels.
  if (nvrtc_version() >= 13000) options.emplace_back("--minimal");
  options.insert(options.end(), source.options.begin(), source.options.end());
  return options;
}

Cubin compile(const Source& source, int architecture) {
  RUSH_CHECK_VALUE(source.text.find('\0') == source.text.npos, source.name, ": the source has a zero byte");
  const Program program = program_of(source);
  for (const std::string& kernel : source.kernels)
    RUSH_NVRTC_CHECK(nvrtcAddNameExpression, program.get(), kernel.c_str());
  const std::vector<std::string> options = options_of(source, architecture);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const nvrtcResult status = nvrtc().nvrtcCompileProgram(program.get(), static_cast<int>(texts.size()), texts.data());
  const std::string log = status == NVRTC_SUCCESS ? "" : log_of(program.get());
  if (!log.empty()) throw CompileError(source, log);
  nvrtc().check(status, "nvrtcCompileProgram");
  return cubin_of(program.get(), source);
}

}  // namespace rush::cuda::jit
