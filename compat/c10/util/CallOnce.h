#pragma once
#include <mutex>

namespace c10 {
using std::call_once;
using std::once_flag;
}  // namespace c10
