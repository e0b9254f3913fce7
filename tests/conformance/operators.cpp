// rush_operators: prints the schema of every operator, one a line.
#include <cstdio>

#include "core/dispatch/registry.h"

int main() {
  for (const auto& [name, op] : rush::registry().operators()) std::puts(op->schema());
}
