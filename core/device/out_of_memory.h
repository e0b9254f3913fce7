// std::bad_alloc as an error of this library.
#pragma once
#include <new>

#include "core/macros.h"

namespace rush {

/// Throws the OutOfMemoryError that says that `what` had no memory for its records.
[[noreturn]] RUSH_COLD void throw_out_of_memory(const char* what);

/// Calls `body`, and throws an OutOfMemoryError in place of a std::bad_alloc: for the functions through which a user
/// enters what allocates in many places. Where there is no memory for the error either, a std::bad_alloc comes after
/// all.
template <class Body>
decltype(auto) translate_bad_alloc(const char* what, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory(what);
  }
}

}  // namespace rush
