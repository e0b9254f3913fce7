#include "backends/cuda/comm/nccl.h"

#include <dlfcn.h>

namespace rush::cuda {

namespace {

// Empty, or what is missing.
std::string load(Nccl& functions) {
  const std::string soname = str("libnccl.so.", NCCL_MAJOR);
  void* library = nullptr;
  for (const std::string& name : {soname, std::string(RUSH_NCCL_LIBRARY)}) {
    if (!library && !name.empty()) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) return soname + " is not found";
#define RUSH_LOAD(name)                                                               \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (!functions.name) return soname + " has no " #name;
  RUSH_NCCL_FUNCTIONS(RUSH_LOAD)
#undef RUSH_LOAD
  return {};
}

}  // namespace

const Nccl& nccl() {
  static Nccl functions;
  static const std::string missing = load(functions);
  RUSH_CHECK_DISTRIBUTED(missing.empty(), "NCCL: ", missing);
  return functions;
}

void check_nccl(ncclResult_t status, const char* call) {
  RUSH_CHECK_DISTRIBUTED(status == ncclSuccess, call, ": ", nccl().ncclGetErrorString(status), ": ",
                         nccl().ncclGetLastError(nullptr));
}

}  // namespace rush::cuda
