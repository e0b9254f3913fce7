// A shared library that a program opens by its name.
#pragma once
#include <dlfcn.h>

#include "c10/util/Exception.h"

namespace at {

/// Open as long as it lives. Throws Error where there is no such library, or no such symbol in it.
class DynamicLibrary {
 public:
  explicit DynamicLibrary(const char* name) : handle_(dlopen(name, RTLD_LOCAL | RTLD_NOW)) {
    if (!handle_) TORCH_CHECK(false, "Error in dlopen: ", dlerror());
  }
  ~DynamicLibrary() { dlclose(handle_); }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  void* sym(const char* name) {
    void* symbol = dlsym(handle_, name);
    if (!symbol) TORCH_CHECK(false, "Error in dlsym: ", dlerror());
    return symbol;
  }

 private:
  void* handle_;
};

}  // namespace at
