// What a load that must fail says.
#pragma once
#include <rushlight.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/library/library.h"

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

template <class E>
void refuses(const std::string& path, const char* expected) {
  try {
    rush::load_library(path);
  } catch (const E& error) {
    if (error.msg().find(expected) != std::string::npos) return;
    std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: of another type: %s\n", path.c_str(), error.what());
  }
  check(false, expected);
}
