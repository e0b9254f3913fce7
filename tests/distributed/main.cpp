// The tests of processes that work together: each of `mpirun -n N rush_distributed_tests` runs all of them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "core/distributed/init.h"

int main(int argc, char** argv) {
  rush::distributed::InitOptions options;
  if (const char* bytes = std::getenv("RUSH_TEST_MESSAGE_BYTES")) options.message_bytes = std::atoi(bytes);
  try {
    rush::distributed::init_process_group("mpi", options);
  } catch (const rush::DistributedError& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
    return 1;
  }
  doctest::Context context(argc, argv);
  const int status = context.run();
  if (status != 0) return status;  // mpirun ends the others
  rush::distributed::destroy_process_group();
  return 0;
}
