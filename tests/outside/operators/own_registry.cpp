// Stands for a copy of Rushlight: its registry is not the program's.
#include "core/dispatch/registry.h"

namespace rush {
Registry& registry() {
  static Registry own;
  return own;
}
}  // namespace rush
